//! `--interactive`: asks the operator before each instance.

use crate::ui::Shell;
use rolling_update::{Action, Decision, Observed, RollingInstance};
use std::collections::BTreeSet;

/// Which instances the operator has agreed to.
#[derive(Debug)]
pub struct Confirmation {
    /// True if none is asked about.
    all: bool,
    agreed: BTreeSet<String>,
}

impl Confirmation {
    pub fn new(interactive: bool) -> Self {
        Self {
            all: !interactive,
            agreed: BTreeSet::new(),
        }
    }

    /// The first instance that the decision begins with and that nobody agreed to. One that an interrupted rolling update
    /// has begun with is not asked about: it ends.
    pub fn find_next<'o>(
        &self,
        decision: &Decision,
        observed: &'o Observed,
    ) -> Option<&'o RollingInstance> {
        let begun = decision.actions.iter().filter_map(|action| match action {
            Action::Detach { instance }
            | Action::Cordon { instance, .. }
            | Action::Terminate { instance } => Some(instance),
            _ => None,
        });
        begun
            .filter(|id| !self.all && !self.agreed.contains(*id))
            .find_map(|id| observed.instances.iter().find(|one| one.id == *id))
            .filter(|one| one.attached && one.mark().is_none())
    }

    /// Asks about an instance, and remembers a yes.
    pub async fn ask(&mut self, instance: &RollingInstance, shell: &Shell) -> bool {
        let (id, group) = (&instance.id, &instance.group);
        let question =
            format!("Replace {id} ({group})? Type yes, or all to be asked no more; else it stops:");
        let answer = shell.ask(&question).await;
        self.all = answer.as_deref() == Some("all");
        self.agreed.insert(id.clone());
        self.all || answer.as_deref() == Some("yes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rolling_update::{Condition, Mark, RollingNode, State, Traffic};
    use std::collections::BTreeMap;

    fn new_instance(id: &str, attached: bool, mark: Option<Mark>) -> RollingInstance {
        let node = RollingNode {
            name: id.to_owned(),
            mark,
            ..RollingNode::default()
        };
        RollingInstance {
            id: id.to_owned(),
            group: "nodes".to_owned(),
            outdated: Some("old".to_owned()),
            condition: Condition::Ready,
            attached,
            node: Some(node),
            traffic: Traffic::Withdrawn,
            hook_waits: false,
            launched: 0,
        }
    }

    #[test]
    fn only_what_nobody_has_begun_with_or_agreed_to_is_asked_about() {
        let observed = Observed {
            instances: vec![
                new_instance("i-detached", false, None),
                new_instance("i-marked", true, Some(Mark::default())),
                new_instance("i-new", true, None),
            ],
            ..Observed::default()
        };
        let terminate = |id: &str| Decision {
            actions: vec![Action::Terminate {
                instance: id.to_owned(),
            }],
            waits: BTreeMap::new(),
            state: State::Going,
        };
        let mut confirmation = Confirmation::new(true);
        let next = |confirmation: &Confirmation, id| {
            let found = confirmation.find_next(&terminate(id), &observed);
            found.map(|one| one.id.clone())
        };
        assert_eq!(next(&confirmation, "i-detached"), None);
        assert_eq!(next(&confirmation, "i-marked"), None);
        assert_eq!(next(&confirmation, "i-new").as_deref(), Some("i-new"));
        assert_eq!(next(&Confirmation::new(false), "i-new"), None);
        confirmation.agreed.insert("i-new".to_owned());
        assert_eq!(next(&confirmation, "i-new"), None);
    }
}
