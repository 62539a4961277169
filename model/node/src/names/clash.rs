//! Names that two clusters would have in common: AWS takes no dots in some of them, so `a.b.example.com` and `a-b.example.com` make
//! one queue and one load balancer.

use super::{
    api_load_balancer, bastion_load_balancer, event_rule, iam_name, load_balancer, queue_name,
    target_group,
};
use crate::config::Role;

/// The first name of an AWS object that both clusters would give; `None`: they have nothing in common.
pub fn common_name(one: &str, other: &str) -> Option<String> {
    let taken = made_of_cluster(other);
    made_of_cluster(one)
        .into_iter()
        .find(|name| taken.contains(name))
}

/// The names that are made of a cluster's name alone and that AWS lets one object have.
fn made_of_cluster(cluster: &str) -> Vec<String> {
    let balancers = [api_load_balancer(cluster), bastion_load_balancer(cluster)];
    let targets = ["tcp", "tls", "kops-controller", "bastion"];
    let roles = [Role::ControlPlane, Role::Node, Role::Bastion];
    let balancers = balancers.iter().map(|name| load_balancer(name));
    let targets = targets.map(|prefix| target_group(cluster, prefix));
    let mut names = vec![queue_name(cluster), event_rule(cluster, "")];
    names.extend(balancers.chain(targets));
    names.extend(roles.map(|role| iam_name(cluster, role)));
    names
}

#[cfg(test)]
mod tests {
    use super::common_name;

    #[test]
    fn clusters_that_differ_in_a_dot_and_a_dash_have_names_in_common() {
        for (one, other) in [
            ("a.b.example.com", "a-b.example.com"),
            ("a-b.c.example.com", "a.b-c.example.com"),
        ] {
            let name = common_name(one, other);
            assert!(
                name.is_some_and(|name| name.contains("a-b")),
                "{one} {other}"
            );
        }
        for (one, other) in [
            ("a.example.com", "b.example.com"),
            ("ab.example.com", "a.b.example.com"),
            (
                "a-very-long-name-of-a-cluster-that-has-to-be-cut.one.example.com",
                "a-very-long-name-of-a-cluster-that-has-to-be-cut.two.example.com",
            ),
        ] {
            assert_eq!(common_name(one, other), None);
        }
    }
}
