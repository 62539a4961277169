//! Denials: who may not do what to which object, and which kind of policy lacks or forbids it. AWS says so in one sentence, of
//! which services leave out the end or all of it.

/// What AWS said of a denial.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denial<'a> {
    /// ARN of who asked.
    pub who: &'a str,
    /// `ec2:CreateVpc`; not always the call's own: a launch template needs `iam:PassRole`.
    pub action: &'a str,
    /// ARN, or `*`.
    pub resource: &'a str,
    /// Which kind of policy, if AWS said.
    pub policy: Option<Policy<'a>>,
}

/// The policy that decided.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Policy<'a> {
    /// `identity-based policy`, `service control policy`.
    pub kind: &'a str,
    /// It has a Deny; else no Allow is in any of its kind.
    pub forbids: bool,
}

const ENDS: [&str; 2] = [" because no ", " with an explicit deny"];

impl<'a> Denial<'a> {
    /// Reads AWS' message; `None` if it says nothing of the kind.
    pub fn parse_message(message: &'a str) -> Option<Self> {
        let message = text_before(message, ENCODED).trim_end_matches(['.', ' ']);
        let (_, rest) = message.split_once("User: ")?;
        let (who, rest) = rest.split_once(" is not authorized to perform: ")?;
        let end = ENDS.iter().filter_map(|end| rest.find(end)).min();
        let (what, why) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        let (action, resource) = what.split_once(" on resource: ").unwrap_or((what, "*"));
        Some(Self {
            who,
            action: action.trim(),
            resource: resource.trim().trim_matches('"'),
            policy: Policy::parse_cause(why),
        })
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        let Self {
            who,
            action,
            resource,
            policy,
        } = self;
        let what = format!("{action} on {resource}");
        let Some(Policy { kind, forbids }) = policy else {
            return format!("allow {what} to {who}, and look for a Deny of it");
        };
        let verb = if *forbids {
            "forbids"
        } else {
            "does not allow"
        };
        let change = if *forbids {
            "remove its Deny, which no Allow overrules"
        } else {
            "allow it there"
        };
        match *kind {
            "identity-based policy" if *forbids => {
                format!("an identity-based policy of {who} forbids {what}: {change}")
            }
            "identity-based policy" => format!(
                "no identity-based policy of {who} allows {what}: add it to one, or attach one that has it"
            ),
            "permissions boundary" => format!(
                "the permissions boundary of {who} {verb} {what}: {change}; other policies cannot give more than it has"
            ),
            "session policy" => format!(
                "the session policy of {who} {verb} {what}: sign in without one, or with one that allows it"
            ),
            "service control policy" | "resource control policy" => format!(
                "a {kind} of your organization {verb} {what} for {who}: only who administers the organization can change that"
            ),
            "resource-based policy" => {
                format!("the policy of {resource} itself {verb} {action} to {who}: {change}")
            }
            "VPC endpoint policy" => format!(
                "the policy of the VPC endpoint through which this machine calls {verb} {what} to {who}: {change}, or call without it"
            ),
            "role trust policy" => {
                format!("the trust policy of {resource} {verb} {action} to {who}: {change}")
            }
            other => format!("{other} {verb} {what} to {who}: {change}"),
        }
    }
}

impl<'a> Policy<'a> {
    /// Of `because no KIND allows the ACTION action` or `with an explicit deny in a KIND`, maybe with the policy's ARN.
    fn parse_cause(why: &'a str) -> Option<Self> {
        if let Some(rest) = why.trim_start().strip_prefix("because no ") {
            let (kind, _) = rest.split_once(" allows")?;
            return Some(Self {
                kind: kind.trim(),
                forbids: false,
            });
        }
        let (_, kind) = why.split_once(" with an explicit deny in ")?;
        let kind = ["an ", "a ", "the "]
            .iter()
            .find_map(|article| kind.strip_prefix(article))
            .unwrap_or(kind);
        Some(Self {
            kind: text_before(kind, ":").trim(),
            forbids: true,
        })
    }
}

const ENCODED: &str = "Encoded authorization failure message";

/// A message without its encoded part: a kilobyte that only `sts:DecodeAuthorizationMessage` reads.
pub(super) fn strip_encoded_part(message: &str) -> String {
    text_before(message, ENCODED).trim_end().to_owned()
}

pub(super) fn encoded_part(message: &str) -> Option<&str> {
    let (_, encoded) = message.split_once(ENCODED)?;
    let rest = encoded.trim_start_matches(':').trim();
    Some(rest).filter(|encoded| !encoded.is_empty())
}

fn text_before<'a>(text: &'a str, end: &str) -> &'a str {
    text.split(end).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Denial, Policy, encoded_part, strip_encoded_part};

    const WHO: &str = "arn:aws:sts::123456789012:assumed-role/deploy/jo";

    fn policy_hint(end: &str) -> String {
        let message = format!(
            "You are not authorized to perform this operation. User: {WHO} is not authorized to perform: \
             ec2:CreateVpc on resource: arn:aws:ec2:eu-west-1:123456789012:vpc/*{end}"
        );
        Denial::parse_message(&message).expect("a denial").hint()
    }

    #[test]
    fn the_sentence_names_who_what_where_and_which_policy() {
        let message = format!(
            "User: {WHO} is not authorized to perform: s3:PutObject on resource: \"arn:aws:s3:::state/a b\" \
             because no identity-based policy allows the s3:PutObject action"
        );
        let wanted = Denial {
            who: WHO,
            action: "s3:PutObject",
            resource: "arn:aws:s3:::state/a b",
            policy: Some(Policy {
                kind: "identity-based policy",
                forbids: false,
            }),
        };
        assert_eq!(Denial::parse_message(&message), Some(wanted));
        assert_eq!(Denial::parse_message("Access Denied"), None);
    }

    #[test]
    fn each_kind_of_policy_has_its_own_next_step() {
        for (end, said) in [
            (
                " because no identity-based policy allows the ec2:CreateVpc action. Encoded authorization failure message: x",
                "no identity-based policy of arn:aws:sts::123456789012:assumed-role/deploy/jo allows ec2:CreateVpc on",
            ),
            (
                " with an explicit deny in an identity-based policy",
                "which no Allow overrules",
            ),
            (
                " with an explicit deny in an identity-based policy: arn:aws:iam::123456789012:policy/no",
                "which no Allow overrules",
            ),
            (
                " because no permissions boundary allows the ec2:CreateVpc action",
                "the permissions boundary of",
            ),
            (
                " with an explicit deny in a permissions boundary",
                "cannot give more than it has",
            ),
            (
                " because no session policy allows the ec2:CreateVpc action",
                "sign in without one",
            ),
            (
                " with an explicit deny in a service control policy",
                "a service control policy of your organization forbids",
            ),
            (
                " because no service control policy allows the ec2:CreateVpc action",
                "only who administers the organization",
            ),
            (
                " with an explicit deny in a resource control policy",
                "a resource control policy of your organization",
            ),
            (
                " because no resource-based policy allows the ec2:CreateVpc action",
                "the policy of arn:aws:ec2:eu-west-1:123456789012:vpc/* itself",
            ),
            (
                " with an explicit deny in a VPC endpoint policy",
                "the VPC endpoint through which this machine calls forbids",
            ),
            (" with an explicit deny", "look for a Deny"),
            (
                "",
                "allow ec2:CreateVpc on arn:aws:ec2:eu-west-1:123456789012:vpc/* to",
            ),
        ] {
            let hint = policy_hint(end);
            assert!(hint.contains(said), "{end}: {hint}");
            assert!(
                hint.contains("ec2:CreateVpc") && hint.contains(WHO),
                "{hint}"
            );
        }
    }

    #[test]
    fn the_encoded_part_is_kept_apart() {
        let message = "You are not authorized. Encoded authorization failure message: AQ0xyz";
        assert_eq!(strip_encoded_part(message), "You are not authorized.");
        assert_eq!(encoded_part(message), Some("AQ0xyz"));
        assert_eq!(encoded_part("Access Denied"), None);
    }
}
