//! A story under way: the spec, the cloud, and the runs of kctl between them.

use super::instances::Instances;
use super::output;
use super::spec_side::{StorySpec, made_up_facts};
use cloud::settle::settle;
use cloud::{Cloud, used_load_balancers};
use engine::{Event, Id, Options, Plan, Snapshot};
use etcd_rules::FormationRecord;
use full::FullSpec;
use simcloud::{Faults, Kill, SimCloud, State, carry_out, judge_state, observe_cloud};
use spec::api::{InstanceGroup, Resource as Envelope, Spec as Kind, set};
use spec::create::{CreateOptions, create_cluster, wanted_facts};
use spec::etcd::{FormedMembers, check_members};
use spec::read::{Problem, render_problems};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A story under way.
pub struct Story {
    pub cloud: SimCloud,
    pub spec: Option<StorySpec>,
    /// What the state store has of etcd clusters, by name.
    pub records: BTreeMap<String, FormationRecord>,
    pub instances: Instances,
    /// What the last run wanted.
    desired: Vec<Cloud>,
    /// Objects of others that their owners removed.
    pub removed: BTreeSet<String>,
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
pub type StoryOutput = Result<String, String>;

/// `--set PATH=VALUE` and `--unset PATH`, as `kctl edit` has them.
fn edit_object<S: Kind + Default>(object: &mut Envelope<S>, edits: &[(&str, &str)]) -> StoryOutput {
    for (flag, value) in edits {
        let done = match (*flag, value.split_once('=')) {
            ("--set", Some((path, value))) => set::set_field(object, path, value),
            ("--unset", _) => set::unset_field(object, value),
            _ => {
                return Err(format!(
                    "write --set PATH=VALUE or --unset PATH, not {flag} {value}"
                ));
            }
        };
        if let Err(problems) = done {
            return Ok(render_problems(&problems));
        }
    }
    Ok(String::new())
}

impl Story {
    pub fn spec_mut(&mut self) -> Result<&mut StorySpec, String> {
        let missing = "there is no cluster yet: begin with `> create cluster NAME --zones ZONES`";
        self.spec.as_mut().ok_or_else(|| missing.to_owned())
    }

    pub fn create_cluster(&mut self, options: &CreateOptions) -> String {
        let created = match create_cluster(options, &made_up_facts(&wanted_facts(options))) {
            Ok(created) => created,
            Err(problems) => return render_problems(&problems),
        };
        let (cluster, groups) = (created.cluster, created.groups);
        let line = |group: &InstanceGroup| format!("instance group {}\n", group.name());
        let printed = groups.iter().map(line).collect();
        self.spec = Some(StorySpec { cluster, groups });
        printed
    }

    pub fn edit_cluster(&mut self, edits: &[(&str, &str)]) -> StoryOutput {
        edit_object(&mut self.spec_mut()?.cluster, edits)
    }

    pub fn edit_group(&mut self, name: &str, edits: &[(&str, &str)]) -> StoryOutput {
        let mut groups = self.spec_mut()?.groups.iter_mut();
        match groups.find(|group| group.name() == name) {
            Some(group) => edit_object(group, edits),
            None => Err(format!("there is no instance group {name}")),
        }
    }

    pub fn copy_group(&mut self, name: &str, new: &str) -> StoryOutput {
        let groups = &mut self.spec_mut()?.groups;
        let Some(mut copy) = groups.iter().find(|group| group.name() == name).cloned() else {
            return Err(format!("there is no instance group {name}"));
        };
        new.clone_into(&mut copy.metadata.name);
        for value in copy
            .spec
            .node_labels
            .values_mut()
            .filter(|value| *value == name)
        {
            new.clone_into(value);
        }
        groups.push(copy);
        groups.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(String::new())
    }

    pub fn delete_group(&mut self, name: &str) -> StoryOutput {
        self.spec_mut()?.groups.retain(|group| group.name() != name);
        Ok(String::new())
    }

    /// `kctl update` without `--yes`, or `kctl delete cluster`.
    pub fn print_plan(&mut self, deleting: bool) -> StoryOutput {
        self.spec_mut()?;
        let mut events = Vec::new();
        let planned = self.make_plan(deleting, &mut events);
        let text = planned.map_or_else(|said| said, |(plan, _)| output::show_plan(&plan));
        Ok(output::show_waits(&events) + &text)
    }

    /// `kctl update --yes`, or `kctl delete cluster --yes`. Afterwards Auto Scaling does its part.
    pub fn apply_update(&mut self, deleting: bool, kill: Option<Kill>) -> StoryOutput {
        self.spec_mut()?;
        self.cloud.faults.borrow_mut().kill = kill;
        let mut events = Vec::new();
        let text = match self.make_plan(deleting, &mut events) {
            Err(said) => said,
            Ok((plan, seen)) => {
                let options = Options::default();
                let mut hear = |event| events.push(event);
                let end = carry_out(&self.cloud, plan, &seen, options, &|| false, &mut hear);
                output::show_end(&end, &events)
            }
        };
        self.cloud.faults.borrow_mut().kill = None;
        self.instances.scale_groups(&self.cloud.state.borrow());
        Ok(output::show_waits(&events) + &text)
    }

    /// The plan, and what it was made from, in the order of `kctl update`. `Err`: what is printed instead.
    fn make_plan(
        &mut self,
        deleting: bool,
        events: &mut Vec<Event>,
    ) -> Result<(Plan<Cloud>, Snapshot<Cloud>), String> {
        let wanted = match (deleting, &self.spec) {
            (false, Some(spec)) => Some(spec.desired_objects()?),
            _ => None,
        };
        let mut hear = |event| events.push(event);
        let seen = observe_cloud(
            &self.cloud,
            deleting,
            Options::default(),
            &|| false,
            &mut hear,
        );
        let seen = seen.map_err(|end| output::show_end(&end, &[]))?;
        let Some((full, wanted)) = wanted else {
            self.desired.clear();
            let plan = engine::plan(&[], &seen).map_err(|error| error.to_string())?;
            return Ok((plan, seen));
        };
        let (desired, seen) = settle(wanted, seen);
        self.check_members(&full, &seen)?;
        used_load_balancers::check_zones(&desired, &seen).map_err(|error| error.to_string())?;
        let (desired, kept) = used_load_balancers::keep_used_load_balancers(
            desired.clone(),
            &seen,
            &self.find_address_users(&desired, &seen),
        );
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
                let formed = FormedMembers::from_record(record, &full.name, &etcd.name, seen);
                problems.extend(check_members(index, etcd, &formed));
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(render_problems(&problems))
        }
    }

    /// Instances that were told the addresses of balancers that are to go, and groups whose launch templates name these.
    fn find_address_users(
        &self,
        desired: &[Cloud],
        seen: &Snapshot<Cloud>,
    ) -> BTreeMap<Id, Vec<String>> {
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
        for balancer in used_load_balancers::unwanted_load_balancers(desired, seen) {
            let by = told.iter().filter(|(_, text)| balancer.is_named_in(text));
            let by: Vec<String> = by.map(|(name, _)| name.clone()).collect();
            if !by.is_empty() {
                named.insert(balancer.id.clone(), by);
            }
        }
        named
    }

    /// Compares what is truly there with what the last run wanted.
    pub fn check_cloud(&self) -> String {
        let state = self.cloud.state.borrow();
        let mut truth = judge_state(&state, &self.desired);
        truth.touched.retain(|id| !self.removed.contains(id));
        output::show_truth(&truth, state.made_twice)
    }
}
