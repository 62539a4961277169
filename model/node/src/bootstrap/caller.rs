//! Who a caller is, from what STS says of it: a machine calls with its role, in a session named after its instance.

use super::Refusal;
use super::echo::echo;
use crate::config::Role;
use crate::names;

/// A machine's session of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The role's name, without its path.
    pub role: String,
    /// `i-...`.
    pub instance: String,
}

/// The machine behind `account` and `arn`, if it is one of `own` account:
/// `arn:PARTITION:sts::ACCOUNT:assumed-role/ROLE/INSTANCE`.
pub fn machine(account: &str, arn: &str, own: &str) -> Result<Caller, Refusal> {
    if account != own {
        return Err(Refusal::OtherAccount {
            account: echo(account),
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
        _ => Err(Refusal::NoMachine { arn: echo(arn) }),
    }
}

/// Checks that the role is that of nodes: ours, or the one in the group's own instance profile, which `kctl update` asks
/// IAM for (as kOps does, `GetRolesInInstanceProfile` in `template_functions.go`).
pub fn check_role(role: &str, cluster: &str, own: Option<&str>) -> Result<(), Refusal> {
    if names::iam(cluster, Role::Node) == role || own == Some(role) {
        return Ok(());
    }
    Err(Refusal::OtherRole { role: echo(role) })
}

/// `i-` and hex digits.
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
        let caller = machine(OWN, arn, OWN).unwrap();
        assert_eq!(caller.role, "nodes.a.example.com");
        assert_eq!(caller.instance, "i-0123456789abcdef0");
        assert!(matches!(
            machine("999999999999", arn, OWN),
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
            let refusal = machine(OWN, arn, OWN);
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
