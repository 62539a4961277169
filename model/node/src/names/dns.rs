//! DNS names of a cluster's services, the same as in kOps.

/// Public name of the API, unless the spec sets `masterPublicName`.
pub fn api_name(cluster: &str) -> String {
    format!("api.{cluster}")
}

/// Internal name of the API, unless the spec sets `masterInternalName`.
pub fn api_internal(cluster: &str) -> String {
    format!("api.{}", internal_domain(cluster))
}

/// Name of the bootstrap endpoint, which is that of kOps' controller. The endpoint's certificate has it, whatever address workers
/// connect to.
pub fn bootstrap_name(cluster: &str) -> String {
    format!("kops-controller.{}", internal_domain(cluster))
}

/// Name of the bastions, unless the spec sets another.
pub fn bastion_name(cluster: &str) -> String {
    format!("bastion.{cluster}")
}

/// Domain of all names that only instances use.
pub fn internal_domain(cluster: &str) -> String {
    format!("internal.{cluster}")
}

/// Limit of a set identifier in Route 53, characters.
const SET_IDENTIFIER: usize = 128;

/// Set identifier of the DNS records that protokube makes for Services, Ingresses and pods.
pub fn record_identifier(cluster: &str) -> String {
    super::shorten_name(&format!("kctl/{cluster}"), SET_IDENTIFIER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kops() {
        let names = [api_name, api_internal, bootstrap_name, bastion_name]
            .map(|name| name("a.example.com"));
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
