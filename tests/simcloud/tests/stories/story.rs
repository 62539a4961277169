//! A story under way: the spec, the cloud, and the runs of kctl between them.

use super::instances::{Instances, living};
use super::output;
use super::spec_side::{Spec, facts};
use cloud::settle::settle;
use cloud::{Cloud, held};
use engine::{Event, Id, Options, Plan, Resource, Snapshot, World};
use full::FullSpec;
use node::etcd::{FORMAT, Record};
use node::names::etcd_volume;
use serde_json::json;
use simcloud::{Body, Faults, Kill, Read, SimCloud, State, block_on, carry_out, judge, look};
use spec::api::{Resource as Envelope, Spec as Kind, set};
use spec::create::{CreateOptions, create, wanted};
use spec::etcd::{Formed, edits};
use spec::read::{Problem, render};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A story under way.
pub struct Story {
    pub cloud: SimCloud,
    spec: Option<Spec>,
    /// What the state store has of etcd clusters, by name.
    records: BTreeMap<String, Record>,
    pub instances: Instances,
    /// What the last run wanted.
    desired: Vec<Cloud>,
    /// Objects of others that their owners removed.
    removed: BTreeSet<String>,
}

impl Default for Story {
    fn default() -> Self {
        let (faults, state) = (Faults::default(), State::default());
        Self {
            cloud: SimCloud::new(1, faults, state, Duration::ZERO),
            spec: None,
            records: BTreeMap::new(),
            instances: Instances::default(),
            desired: Vec::new(),
            removed: BTreeSet::new(),
        }
    }
}

/// What a command prints, or a mistake in the story.
type Printed = Result<String, String>;

/// `--set PATH=VALUE` and `--unset PATH`, as `kctl edit` has them.
fn edit<S: Kind + Default>(object: &mut Envelope<S>, edits: &[(&str, &str)]) -> Printed {
    for (flag, value) in edits {
        let done = match (*flag, value.split_once('=')) {
            ("--set", Some((path, value))) => set::set(object, path, value),
            ("--unset", _) => set::unset(object, value),
            _ => {
                return Err(format!(
                    "write --set PATH=VALUE or --unset PATH, not {flag} {value}"
                ));
            }
        };
        if let Err(problems) = done {
            return Ok(render(&problems));
        }
    }
    Ok(String::new())
}

fn parse_id(text: &str) -> Result<Id, String> {
    let (kind, name) = text
        .split_once('/')
        .ok_or_else(|| format!("{text} is not KIND/NAME, as plans name objects"))?;
    Ok(Id::new(kind, name))
}

impl Story {
    fn spec(&mut self) -> Result<&mut Spec, String> {
        let missing = "there is no cluster yet: begin with `> create cluster NAME --zones ZONES`";
        self.spec.as_mut().ok_or_else(|| missing.to_owned())
    }

    pub fn create_cluster(&mut self, options: &CreateOptions) -> Printed {
        let created = match create(options, &facts(&wanted(options))) {
            Ok(created) => created,
            Err(problems) => return Ok(render(&problems)),
        };
        let groups = created.groups;
        let printed = groups
            .iter()
            .map(|group| format!("instance group {}\n", group.name()));
        let printed = printed.collect();
        let cluster = created.cluster;
        self.spec = Some(Spec { cluster, groups });
        Ok(printed)
    }

    pub fn edit_cluster(&mut self, edits: &[(&str, &str)]) -> Printed {
        edit(&mut self.spec()?.cluster, edits)
    }

    pub fn edit_group(&mut self, name: &str, edits: &[(&str, &str)]) -> Printed {
        let mut groups = self.spec()?.groups.iter_mut();
        match groups.find(|group| group.name() == name) {
            Some(group) => edit(group, edits),
            None => Err(format!("there is no instance group {name}")),
        }
    }

    pub fn copy_group(&mut self, name: &str, new: &str) -> Printed {
        let groups = &mut self.spec()?.groups;
        let Some(mut copy) = groups.iter().find(|group| group.name() == name).cloned() else {
            return Err(format!("there is no instance group {name}"));
        };
        copy.metadata.name = new.to_owned();
        for value in copy
            .spec
            .node_labels
            .values_mut()
            .filter(|value| *value == name)
        {
            *value = new.to_owned();
        }
        groups.push(copy);
        groups.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(String::new())
    }

    pub fn delete_group(&mut self, name: &str) -> Printed {
        self.spec()?.groups.retain(|group| group.name() != name);
        Ok(String::new())
    }

    /// `kctl update` without `--yes`, or `kctl delete cluster`.
    pub fn plan(&mut self, deleting: bool) -> Printed {
        self.spec()?;
        let mut events = Vec::new();
        let planned = self.planned(deleting, &mut events);
        let text = planned.map_or_else(|said| said, |(plan, _)| output::plan(&plan));
        Ok(output::waits(&events) + &text)
    }

    /// `kctl update --yes`, or `kctl delete cluster --yes`. Afterwards Auto Scaling does its part.
    pub fn apply(&mut self, deleting: bool, kill: Option<Kill>) -> Printed {
        self.spec()?;
        self.cloud.faults.borrow_mut().kill = kill;
        let mut events = Vec::new();
        let text = match self.planned(deleting, &mut events) {
            Err(said) => said,
            Ok((plan, seen)) => {
                let options = Options::default();
                let mut hear = |event| events.push(event);
                let end = carry_out(&self.cloud, plan, &seen, options, &|| false, &mut hear);
                output::end(&end, &events)
            }
        };
        self.cloud.faults.borrow_mut().kill = None;
        self.instances.scale(&self.cloud.state.borrow());
        Ok(output::waits(&events) + &text)
    }

    /// The plan, and what it was made from, in the order of `kctl update`. `Err`: what is printed instead.
    fn planned(
        &mut self,
        deleting: bool,
        events: &mut Vec<Event>,
    ) -> Result<(Plan<Cloud>, Snapshot<Cloud>), String> {
        let wanted = match (deleting, &self.spec) {
            (false, Some(spec)) => Some(spec.desired()?),
            _ => None,
        };
        let mut hear = |event| events.push(event);
        let seen = look(
            &self.cloud,
            deleting,
            Options::default(),
            &|| false,
            &mut hear,
        );
        let seen = seen.map_err(|end| output::end(&end, &[]))?;
        let Some((full, wanted)) = wanted else {
            self.desired.clear();
            let plan = engine::plan(&[], &seen).map_err(|error| error.to_string())?;
            return Ok((plan, seen));
        };
        let (desired, seen) = settle(wanted, seen);
        self.check_members(&full, &seen)?;
        held::check(&desired, &seen).map_err(|error| error.to_string())?;
        let (desired, kept) = held::hold(desired.clone(), &seen, &self.named(&desired, &seen));
        let mut plan = engine::plan(&desired, &seen).map_err(|error| error.to_string())?;
        plan.kept.extend(kept);
        self.desired = desired;
        Ok((plan, seen))
    }

    /// Refuses etcd members other than those of the record.
    fn check_members(&self, full: &FullSpec, seen: &Snapshot<Cloud>) -> Result<(), String> {
        let mut problems: Vec<Problem> = Vec::new();
        for (index, etcd) in full.etcd.iter().enumerate() {
            if let Some(record) = self.records.get(&etcd.name) {
                let formed = Formed::of(record, &full.name, &etcd.name, seen);
                problems.extend(edits(index, etcd, &formed));
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(render(&problems))
        }
    }

    /// Instances that were told the addresses of balancers that are to go, and groups whose launch templates name these.
    fn named(&self, desired: &[Cloud], seen: &Snapshot<Cloud>) -> BTreeMap<Id, Vec<String>> {
        let running = self.instances.running.iter();
        let mut told: Vec<(String, &str)> = running
            .map(|(id, one)| (id.clone(), one.user_data.as_str()))
            .collect();
        for item in &seen.items {
            if let Cloud::LaunchTemplate(template) = &item.resource
                && let Some(text) = template.user_data.as_ref().and_then(|text| text.as_known())
            {
                told.push((format!("group {}", template.launch_template_name), text));
            }
        }
        let mut named: BTreeMap<Id, Vec<String>> = BTreeMap::new();
        for balancer in held::leaving(desired, seen) {
            let by = told.iter().filter(|(_, text)| balancer.is_named_in(text));
            let by: Vec<String> = by.map(|(name, _)| name.clone()).collect();
            if !by.is_empty() {
                named.insert(balancer.id.clone(), by);
            }
        }
        named
    }

    /// Compares what is truly there with what the last run wanted.
    pub fn check(&self) -> String {
        let state = self.cloud.state.borrow();
        let mut truth = judge(&state, &self.desired);
        truth.touched.retain(|id| !self.removed.contains(id));
        output::truth(&truth, state.made_twice)
    }

    /// Changes what goes wrong in AWS from now on.
    pub fn fault(&mut self, change: impl FnOnce(&mut Faults)) -> Printed {
        change(&mut self.cloud.faults.borrow_mut());
        Ok(String::new())
    }

    /// What protokube does on the first boot of control planes: their etcd clusters and volumes are recorded.
    pub fn form_etcd(&mut self) -> Printed {
        let (full, _) = self.spec()?.desired()?;
        let state = self.cloud.state.borrow();
        let mut printed = String::new();
        for etcd in &full.etcd {
            let mut members = serde_json::Map::new();
            for member in &etcd.members {
                let name = etcd_volume(&full.name, &etcd.name, &member.name);
                let volume = physical(&state, &Id::new("ebs_volume", name))?;
                printed.push_str(&format!(
                    "{} member {} on {volume}\n",
                    etcd.name, member.name
                ));
                members.insert(member.name.clone(), json!({ "volume": volume }));
            }
            let formed = json!({ "clusterId": "1", "token": "1" });
            let record =
                json!({ "format": FORMAT, "state": { "formed": formed }, "members": members });
            let record = serde_json::from_value(record).unwrap();
            self.records.insert(etcd.name.clone(), record);
        }
        Ok(printed)
    }

    /// Auto Scaling launches another in its place.
    pub fn terminate(&mut self, instance: &str) -> Printed {
        let gone = self.instances.running.remove(instance);
        gone.ok_or_else(|| format!("no instance {instance} runs: `> show instances` lists them"))?;
        self.instances.scale(&self.cloud.state.borrow());
        Ok(String::new())
    }

    /// Its instances are gone, and none can be launched in it. AWS' API still shows everything else there.
    pub fn lose_zone(&mut self, zone: &str) -> Printed {
        self.instances.lost_zones.insert(zone.to_owned());
        self.instances.scale(&self.cloud.state.borrow());
        Ok(String::new())
    }

    /// One of the cluster's objects by its name in plans, or anything by its id in the cloud; AWS may refuse.
    pub fn delete_by_hand(&mut self, what: &str) -> Printed {
        if !what.contains('/') {
            let mut state = self.cloud.state.borrow_mut();
            let object = state.object_mut(what);
            let object = object.ok_or_else(|| format!("there is no {what}"))?;
            object.remove(engine::Clock::now(&self.cloud.clock));
            self.removed.insert(what.to_owned());
            return Ok(String::new());
        }
        let id = parse_id(what)?;
        let physical = physical(&self.cloud.state.borrow(), &id)?;
        let read = Read {
            now: self.now(),
            ..Read::default()
        };
        let seen = self.cloud.state.borrow().sweep(read);
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

    fn now(&self) -> Duration {
        engine::Clock::now(&self.cloud.clock)
    }

    /// An object of somebody else's with the name that the cluster wants for one of its own.
    pub fn add_foreign(&mut self, id: &str) -> Printed {
        let id = parse_id(id)?;
        let (_, desired) = self.spec()?.desired()?;
        let resource = desired.into_iter().find(|one| one.id() == id);
        let resource = resource.ok_or_else(|| format!("the spec wants no {id}"))?;
        let (attrs, refs) = (BTreeMap::new(), BTreeSet::new());
        let body = Body {
            resource,
            attrs,
            refs,
        };
        let now = self.now();
        let physical = self.cloud.state.borrow_mut().add(body, true, now, now);
        Ok(physical)
    }

    /// Something of somebody else's that refers to an object of the cluster.
    pub fn add_foreign_user(&mut self, id: &str) -> Printed {
        let id = parse_id(id)?;
        let mut state = self.cloud.state.borrow_mut();
        let physical = physical(&state, &id)?;
        if let Some(resource) = living(&state, &id).map(|body| body.resource.clone()) {
            state.add_foreign_user(resource, &physical, self.now());
        }
        let user = state.objects.last().map(|object| object.physical.clone());
        Ok(user.unwrap_or_default())
    }
}

/// The cloud's id of the cluster's object.
fn physical(state: &State, id: &Id) -> Result<String, String> {
    let is = |body: &Body| body.resource.id() == *id;
    let mut living = state.living();
    let object = living.find(|object| object.body().is_some_and(|body| is(body)));
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
