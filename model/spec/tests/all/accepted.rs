//! Specs that look wrong but that kOps accepts.
use spec::read::{Problem, read_documents, render_problems};
use spec::validate::validate_documents;

const SPEC: &str = test_support::CLUSTER;

fn error_text(spec: &str) -> String {
    let documents = read_documents("cluster.yaml", spec);
    let found = documents.map_or_else(|refused| refused, |read| validate_documents(&read));
    let errors: Vec<Problem> = found.into_iter().filter(Problem::is_error).collect();
    render_problems(&errors)
}

#[test]
fn a_gossip_name_is_only_a_name_where_there_is_no_dns() {
    let gossip = SPEC.replace("a.example.com", "a.k8s.local");
    assert!(error_text(&gossip).contains("gossip names"));
    let without_dns = gossip
        .replace("      type: Public\n---", "      type: None\n---")
        .replace(
            "    dns: {}\n",
            "    loadBalancer: {class: Network, type: Public}\n",
        );
    assert_eq!(error_text(&without_dns), "");
}

#[test]
fn subnets_of_any_type_may_be_routed_by_somebody_else() {
    let with = |kind: &str, egress: &str| {
        let subnet = format!("    type: {kind}\n    egress: {egress}\n    zone: eu-west-1a");
        error_text(&SPEC.replace("    type: Public\n    zone: eu-west-1a", &subnet))
    };
    for kind in ["Public", "Utility"] {
        let found = with(kind, "External");
        assert!(!found.contains("egress"), "{kind}: {found}");
        assert!(
            with(kind, "nat-0123456789abcdef0").contains("only private subnets have an egress")
        );
    }
}

/// Roles that do not meet may each have a file of one name and place.
#[test]
fn two_roles_have_their_own_file_of_one_name() {
    let with = |roles: [&str; 2]| {
        let file = |role| {
            format!(
                "  - name: settings\n    path: /etc/settings\n    content: {role}\n    roles: [{role}]\n"
            )
        };
        let files = roles.map(file).concat();
        error_text(&SPEC.replacen("spec:\n", &format!("spec:\n  fileAssets:\n{files}"), 1))
    };
    assert_eq!(with(["Master", "Node"]), "");
    assert!(with(["Node", "Node"]).contains("is the place of spec.fileAssets[0] too"));
}
