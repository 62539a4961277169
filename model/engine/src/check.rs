//! The rules that every plan keeps, checked before it is applied: a plan may come from a file.

use super::order;
use super::plan::{Action, FORMAT, Plan, PlanError, Reason, Step};
use super::resource::{Id, Resource};

impl<R: Resource> Plan<R> {
    /// Ids agree, every need is a step, nothing goes in a circle, each step has what its action takes
    /// and a reason that fits it.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.format != FORMAT {
            return Err(PlanError::Format { found: self.format });
        }
        let makes = |step: &Step<R>| step.action != Action::Delete;
        let for_something = !self.kept.is_empty() || self.steps.values().any(makes);
        for (id, step) in &self.steps {
            if for_something && deletes_data(step) {
                let defect =
                    "it deletes data, and the plan is not the one in which everything goes";
                return Err(PlanError::Broken(id.clone(), defect));
            }
            if let Some(defect) = step_defect(id, step) {
                return Err(PlanError::Broken(id.clone(), defect));
            }
            if step.needs.iter().any(|need| !self.steps.contains_key(need)) {
                let defect = "it waits for a step that is not there";
                return Err(PlanError::Broken(id.clone(), defect));
            }
        }
        self.dependency_order().map(|_| ())
    }

    /// The ids of all steps, each after those it waits for.
    pub fn dependency_order(&self) -> Result<Vec<Id>, PlanError> {
        let needs = self
            .steps
            .iter()
            .map(|(id, step)| (id.clone(), step.needs.clone()))
            .collect();
        order::topological_order(&needs).map_err(PlanError::Cycle)
    }
}

fn deletes_data<R: Resource>(step: &Step<R>) -> bool {
    let before = step.before.as_ref();
    step.action == Action::Delete && before.is_some_and(|before| before.resource.holds_data())
}

/// What is wrong with a step by itself.
fn step_defect<R: Resource>(key: &Id, step: &Step<R>) -> Option<&'static str> {
    if *key != step.id {
        return Some("its key is another id");
    }
    let after = step.after.as_ref().map(Resource::id);
    let before = step.before.as_ref().map(|before| before.resource.id());
    let fits = match (step.action, &step.reason) {
        (Action::Create, Reason::Missing) => before.is_none() && after.as_ref() == Some(key),
        (Action::Update, Reason::Differs | Reason::Follows { .. }) => {
            before.as_ref() == Some(key) && after.as_ref() == Some(key) && !step.changes.is_empty()
        }
        (Action::Delete, Reason::Unwanted | Reason::Replaced { .. }) => {
            before.as_ref() == Some(key) && after.is_none()
        }
        (Action::Delete, Reason::Duplicate) => {
            step.before.as_ref().map(duplicate_id).as_ref() == Some(key) && after.is_none()
        }
        _ => return Some("its reason does not fit its action"),
    };
    (!fits).then_some("it lacks what its action takes")
}

/// The id of the step that removes a duplicate.
pub(super) fn duplicate_id<R: Resource>(item: &super::Observed<R>) -> Id {
    let id = item.resource.id();
    Id::new(id.kind(), format!("{}#{}", id.name(), item.physical))
}
