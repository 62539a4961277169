//! What happens to a story from outside of kctl: in AWS, by somebody's hand, on control planes.

use super::instances::living_body;
use super::story::{Story, StoryOutput};
use engine::{Clock, Id, Resource, World};
use node::formatted::FORMAT;
use node::names::etcd_volume;
use serde_json::json;
use simcloud::{Body, Faults, ReadScope, State, block_on};
use std::collections::{BTreeMap, BTreeSet};

fn parse_id(text: &str) -> Result<Id, String> {
    let (kind, name) = text
        .split_once('/')
        .ok_or_else(|| format!("{text} is not KIND/NAME, as plans name objects"))?;
    Ok(Id::new(kind, name))
}

impl Story {
    /// A kind of object, by its name in plans: one that the spec wants or that was there once.
    pub fn find_kind(&mut self, name: &str) -> Result<&'static str, String> {
        let wanted = self.spec_mut()?.desired_objects().map(|(_, wanted)| wanted);
        let wanted = wanted.unwrap_or_default();
        let state = self.cloud.state.borrow();
        let mut kinds = wanted.iter().map(|one| one.id().kind().to_owned());
        let prefix = format!("{name}-");
        let was_there = |physical: &str| physical.starts_with(&prefix);
        if kinds.any(|kind| kind == name)
            || state.objects.iter().any(|one| was_there(&one.physical))
        {
            // Faults hold names of the source; a story has a few.
            return Ok(name.to_owned().leak());
        }
        Err(format!(
            "there is no kind {name}: write one as `> plan` does, such as launch_template"
        ))
    }

    /// Changes what goes wrong in AWS from now on.
    pub fn change_faults(&mut self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.cloud.faults.borrow_mut());
    }

    /// What protokube does on the first boot of control planes: their etcd clusters and volumes are recorded.
    pub fn form_etcd(&mut self) -> StoryOutput {
        let (full, _) = self.spec_mut()?.desired_objects()?;
        let state = self.cloud.state.borrow();
        let mut printed = String::new();
        for etcd in &full.etcd {
            let mut members = serde_json::Map::new();
            for member in &etcd.members {
                let name = etcd_volume(&full.name, &etcd.name, &member.name);
                let volume = physical_id(&state, &Id::new("ebs_volume", name))?;
                printed.push_str(&format!(
                    "{} member {} on {volume}\n",
                    etcd.name, member.name
                ));
                members.insert(member.name.clone(), json!({ "volume": volume }));
            }
            let generation = json!({ "clusterId": "1", "token": "1" });
            let record = json!({ "format": FORMAT, "generation": generation, "members": members });
            let record = serde_json::from_value(record).unwrap();
            self.records.insert(etcd.name.clone(), record);
        }
        Ok(printed)
    }

    /// Auto Scaling launches another in its place.
    pub fn terminate_instance(&mut self, instance: &str) -> Result<(), String> {
        let gone = self.instances.running.remove(instance);
        gone.ok_or_else(|| format!("no instance {instance} runs: `> show instances` lists them"))?;
        self.instances.scale_groups(&self.cloud.state.borrow());
        Ok(())
    }

    /// Its instances are gone, and none can be launched in it. AWS' API still shows everything else there.
    pub fn lose_zone(&mut self, zone: &str) {
        self.instances.lost_zones.insert(zone.to_owned());
        self.instances.scale_groups(&self.cloud.state.borrow());
    }

    /// One of the cluster's objects by its name in plans, or anything by its id in the cloud; AWS may refuse.
    pub fn delete_by_hand(&mut self, what: &str) -> StoryOutput {
        if !what.contains('/') {
            let mut state = self.cloud.state.borrow_mut();
            let object = state.object_mut(what);
            let object = object.ok_or_else(|| format!("there is no {what}"))?;
            object.remove_body(self.cloud.clock.now());
            self.removed.insert(what.to_owned());
            return Ok(String::new());
        }
        let id = parse_id(what)?;
        let physical = physical_id(&self.cloud.state.borrow(), &id)?;
        let read = ReadScope {
            now: self.cloud.clock.now(),
            ..ReadScope::default()
        };
        let seen = self.cloud.state.borrow().sweep_all(read);
        let mut items = seen.items.iter();
        let Some(item) = items.find(|item| item.physical == physical) else {
            return Err(format!("reads do not show {what} yet"));
        };
        let endangered = self.cloud.state.borrow().endangered.clone();
        let removed = block_on(&self.cloud.clock, || false, self.cloud.remove(item));
        // It was not kctl.
        self.cloud.state.borrow_mut().endangered = endangered;
        match removed {
            Some(Err(failure)) => Ok(format!("error: {failure}\n")),
            _ => Ok(String::new()),
        }
    }

    /// An object of somebody else's with the name that the cluster wants for one of its own.
    pub fn add_foreign(&mut self, id: &str) -> StoryOutput {
        let id = parse_id(id)?;
        let (_, desired) = self.spec_mut()?.desired_objects()?;
        let resource = desired.into_iter().find(|one| one.id() == id);
        let resource = resource.ok_or_else(|| format!("the spec wants no {id}"))?;
        let (attrs, refs) = (BTreeMap::new(), BTreeSet::new());
        let body = Body {
            resource,
            attrs,
            refs,
        };
        let now = self.cloud.clock.now();
        let physical = self
            .cloud
            .state
            .borrow_mut()
            .add_object(body, true, now, now);
        Ok(physical)
    }

    /// Something of somebody else's that refers to an object of the cluster.
    pub fn add_foreign_user(&mut self, id: &str) -> StoryOutput {
        let id = parse_id(id)?;
        let mut state = self.cloud.state.borrow_mut();
        let physical = physical_id(&state, &id)?;
        if let Some(resource) = living_body(&state, &id).map(|body| body.resource.clone()) {
            state.add_foreign_user(resource, &physical, self.cloud.clock.now());
        }
        let user = state.objects.last().map(|object| object.physical.clone());
        Ok(user.unwrap_or_default())
    }
}

/// The cloud's id of the cluster's object.
fn physical_id(state: &State, id: &Id) -> Result<String, String> {
    let is = |body: &Body| body.resource.id() == *id;
    let mut living = state.living_objects();
    let object = living.find(|object| object.current_body().is_some_and(|body| is(body)));
    let missing = || {
        format!(
            "there is no {id}: `> show {}` lists what there is",
            id.kind()
        )
    };
    object
        .map(|object| object.physical.clone())
        .ok_or_else(missing)
}
