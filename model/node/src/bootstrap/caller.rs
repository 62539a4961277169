//! Identifies a caller from the reply of STS: an instance calls with its role, in a session named after its instance id.

use super::Refusal;
use super::untrusted_text::untrusted_excerpt;
use crate::config::Role;
use crate::names;

/// A role session of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Name of the role, without its path.
    pub role: String,
    /// Instance id, `i-...`.
    pub instance: String,
}

/// Parses the account and ARN that STS returned. The account must be `own`, and the ARN must be
pub fn identify_caller(account: &str, arn: &str, own: &str) -> Result<Caller, Refusal> {
    if account != own {
        return Err(Refusal::OtherAccount {
            account: untrusted_excerpt(account),
        });
    }
    let parts: Vec<&str> = arn.split(':').collect();
    let session = match parts.as_slice() {
        ["arn", _, "sts", "", of, session] if *of == own => *session,
        _ => "",
    };
    let parts: Vec<&str> = session.split('/').collect();
    match parts.as_slice() {
        ["assumed-role", role, instance] if is_instance(instance) => Ok(Caller {
            role: (*role).to_owned(),
            instance: (*instance).to_owned(),
        }),
        _ => Err(Refusal::NoMachine {
            arn: untrusted_excerpt(arn),
        }),
    }
}

/// Checks that a role is that of the cluster's nodes, or `own`: the role in the group's own instance profile, which `kctl update`
/// reads from IAM (as kOps does, `GetRolesInInstanceProfile` in `template_functions.go`).
pub fn check_role(role: &str, cluster: &str, own: Option<&str>) -> Result<(), Refusal> {
    if names::iam_name(cluster, Role::Node) == role || own == Some(role) {
        return Ok(());
    }
    Err(Refusal::OtherRole {
        role: untrusted_excerpt(role),
    })
}

/// True for `i-` followed by 8 to 17 hex digits.
pub fn is_instance(text: &str) -> bool {
    let digits = text.strip_prefix("i-").unwrap_or_default();
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (8..=17).contains(&digits.len()) && digits.bytes().all(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "123456789012";

    #[test]
    fn a_machine_is_a_session_of_a_role_in_our_account_named_after_an_instance() {
        let arn = "arn:aws:sts::123456789012:assumed-role/nodes.a.example.com/i-0123456789abcdef0";
        let caller = identify_caller(OWN, arn, OWN).unwrap();
        assert_eq!(caller.role, "nodes.a.example.com");
        assert_eq!(caller.instance, "i-0123456789abcdef0");
        assert!(matches!(
            identify_caller("999999999999", arn, OWN),
            Err(Refusal::OtherAccount { .. })
        ));
        for arn in [
            "arn:aws:iam::123456789012:user/i-0123456789abcdef0",
            "arn:aws:sts::123456789012:assumed-role/nodes.a.example.com/botocore-session-1",
            "arn:aws:sts::123456789012:assumed-role/nodes.a.example.com/i-0123456789abcdef0/x",
            "arn:aws:sts::999999999999:assumed-role/nodes.a.example.com/i-0123456789abcdef0",
            "arn:aws:sts::123456789012:assumed-role/nodes.a.example.com/i-../../etc",
            "",
        ] {
            let refusal = identify_caller(OWN, arn, OWN);
            assert!(matches!(refusal, Err(Refusal::NoMachine { .. })), "{arn}");
        }
    }

    #[test]
    fn the_role_is_ours_or_that_of_the_groups_profile() {
        let cluster = "a.example.com";
        assert_eq!(check_role("nodes.a.example.com", cluster, None), Ok(()));
        assert_eq!(check_role("mine", cluster, Some("mine")), Ok(()));
        for (role, profile) in [
            ("masters.a.example.com", None),
            ("nodes.b.example.com", None),
            ("other", Some("mine")),
        ] {
            assert!(check_role(role, cluster, profile).is_err(), "{role}");
        }
    }
}
