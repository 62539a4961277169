//! The simulated cloud as the engine sees it: every method is a request or two.

use super::cloud::SimCloud;
use super::rules::{self, Naming, half_made, naming_rule, needs_usable, refusal_failure, slow_end};
use super::state::{Body, physical_refs};
use super::verbs::{
    body_of, change_object, create_object, put_answer, removal_answer, remove_object,
};
use cloud::Cloud;
use engine::{
    Attrs, Class, Clock, Failure, Observed, Put, Refs, Removed, Resource, Snapshot, World,
};
use std::collections::BTreeSet;

impl SimCloud {
    /// References to what reads do not show yet are refused now and then; to what is gone, or not usable, always.
    fn check_refs(&self, want: &Cloud, refs: &BTreeSet<String>) -> Result<(), Failure> {
        let (state, now) = (self.state.borrow(), self.clock.now());
        for physical in refs {
            let object = state
                .find_object(physical)
                .filter(|object| object.current_body().is_some());
            let ready = object.is_some_and(|object| {
                let hidden = !object.is_shown(now)
                    && self
                        .random()
                        .is_within_percent(self.faults.borrow().not_yet);
                !hidden && (object.usable <= now || !needs_usable(want))
            });
            if !ready {
                let message = format!("{physical} does not exist");
                return Err(refusal_failure(Class::NotYet, "put", &want.id(), &message));
            }
        }
        Ok(())
    }

    async fn create(&self, want: &Cloud, refs: &Refs) -> Result<Put, Failure> {
        let refs = physical_refs(want, refs);
        self.check_refs(want, &refs)?;
        let body = body_of(want, refs);
        let id = want.id();
        self.send_request("create", Some(&id), move |state, times| {
            create_object(state, body, times)
        })
        .await
    }

    async fn change(&self, want: &Cloud, physical: &str, refs: &Refs) -> Result<Put, Failure> {
        let refs = physical_refs(want, refs);
        self.check_refs(want, &refs)?;
        let (body, physical) = (body_of(want, refs), physical.to_owned());
        self.send_request("change", None, move |state, times| {
            change_object(state, &physical, body, times)
        })
        .await
    }
}

impl World<Cloud> for SimCloud {
    async fn observe(&self) -> Result<Snapshot<Cloud>, Failure> {
        self.send_request("observe", None, |state, times| {
            Ok(state.sweep_all(times.read))
        })
        .await
    }

    async fn find(&self, want: &Cloud, refs: &Refs) -> Result<Option<Observed<Cloud>>, Failure> {
        let body = Body {
            resource: want.clone(),
            attrs: Attrs::new(),
            refs: physical_refs(want, refs),
        };
        self.send_request("find", None, move |state, times| {
            let (id, naming) = (body.resource.id(), naming_rule(&body));
            let found = state.find_visible(times.read, |object, other| match &naming {
                Naming::Taken(_) => rules::naming_rule(other) == naming,
                _ => !object.foreign && other.resource.id() == id,
            });
            match found {
                Some((object, found)) if object.foreign || found.resource.id() != id => {
                    let message = format!("the name belongs to {}", object.physical);
                    Err(refusal_failure(Class::Invalid, "find", &id, &message))
                }
                found => Ok(found.map(|(_, found)| found)),
            }
        })
        .await
    }

    async fn put(
        &self,
        want: &Cloud,
        have: Option<&Observed<Cloud>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        if let Some(have) = have {
            return self.change(want, &have.physical, refs).await;
        }
        let Some(half) = half_made(want) else {
            return self.create(want, refs).await;
        };
        let made = self.create(&half, refs).await?;
        let whole = self.change(want, &made.physical, refs).await;
        whole.map_err(|failure| Failure {
            class: Class::Unknown,
            ..failure
        })
    }

    async fn remove(&self, have: &Observed<Cloud>) -> Result<Removed, Failure> {
        let have = have.clone();
        if have.resource.holds_data() && !self.deleting.get() {
            let endangered = &mut self.state.borrow_mut().endangered;
            endangered.push(have.physical.clone());
        }
        self.send_request("remove", None, move |state, times| {
            remove_object(state, &have, times)
        })
        .await
    }

    async fn ready(&self, want: &Cloud, physical: &str) -> Result<Put, Failure> {
        let (id, physical) = (want.id(), physical.to_owned());
        self.send_request("ready", None, move |state, times| {
            let object = state
                .find_object(&physical)
                .filter(|object| object.current_body().is_some());
            let gone = || refusal_failure(Class::Gone, "ready", &id, "does not exist");
            object
                .map(|object| put_answer(object, times.now))
                .ok_or_else(gone)
        })
        .await
    }

    async fn gone(&self, have: &Observed<Cloud>) -> Result<Removed, Failure> {
        let have = have.clone();
        self.send_request("gone", None, move |state, times| {
            let what = slow_end(&have.resource).unwrap_or_default();
            let object = state.find_object(&have.physical);
            Ok(object.map_or(Removed::Done, |object| {
                removal_answer(object, what, times.now)
            }))
        })
        .await
    }
}
