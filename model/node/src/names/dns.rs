//! The DNS names of a cluster's machines and services, as kOps gives them.

/// The API for people, unless the spec names another (`masterPublicName`).
pub fn api(cluster: &str) -> String {
    format!("api.{cluster}")
}

/// The API for machines, unless the spec names another (`masterInternalName`).
pub fn api_internal(cluster: &str) -> String {
    format!("api.{}", internal(cluster))
}

/// protokube's bootstrap endpoint, by kOps' name of its controller: in the endpoint's certificate, whatever address is dialed.
pub fn bootstrap(cluster: &str) -> String {
    format!("kops-controller.{}", internal(cluster))
}

/// The bastions, unless the spec names another.
pub fn bastion(cluster: &str) -> String {
    format!("bastion.{cluster}")
}

/// The domain of everything that only machines dial.
pub fn internal(cluster: &str) -> String {
    format!("internal.{cluster}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kops() {
        let names = [api, api_internal, bootstrap, bastion].map(|name| name("a.example.com"));
        assert_eq!(
            names,
            [
                "api.a.example.com",
                "api.internal.a.example.com",
                "kops-controller.internal.a.example.com",
                "bastion.a.example.com",
            ]
        );
    }
}
