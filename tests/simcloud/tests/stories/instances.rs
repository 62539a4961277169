//! The instances of a story: those that its Auto Scaling groups would have launched, each with the launch template of that time.

use cloud::{AutoscalingGroup, Cloud};
use engine::{Id, Ref, Resource};
use simcloud::{Body, State};
use std::collections::{BTreeMap, BTreeSet};

/// An instance that runs.
pub struct Instance {
    /// Its Auto Scaling group.
    group: String,
    zone: String,
    /// Version of the launch template.
    version: String,
    pub user_data: String,
}

/// All instances that run, by id.
#[derive(Default)]
pub struct Instances {
    pub running: BTreeMap<String, Instance>,
    pub lost_zones: BTreeSet<String>,
    launched: usize,
}

/// The object of the cluster with that id.
pub fn living_body<'a>(state: &'a State, id: &Id) -> Option<&'a Body> {
    let mut bodies = state
        .living_objects()
        .filter_map(|object| object.current_body());
    bodies.find(|body| body.resource.id() == *id).map(|b| &**b)
}

impl Instances {
    /// What Auto Scaling does: launches what groups lack of their smallest size, in zones that are there, and terminates what is
    /// more than their largest.
    pub fn scale_groups(&mut self, state: &State) {
        let bodies = state
            .living_objects()
            .filter_map(|object| object.current_body());
        let groups = bodies.filter_map(|body| match &body.resource {
            Cloud::AutoscalingGroup(group) => Some(group),
            _ => None,
        });
        let groups: Vec<&AutoscalingGroup> = groups.collect();
        let lost = &self.lost_zones;
        self.running.retain(|_, one| {
            let mut groups = groups.iter();
            let there = groups.any(|group| group.auto_scaling_group_name == one.group);
            there && !lost.contains(&one.zone)
        });
        for group in groups {
            let name = &group.auto_scaling_group_name;
            let size = |size: i32| usize::try_from(size).unwrap_or_default();
            let (least, most) = (size(group.min_size), size(group.max_size));
            let own = self.running.iter().filter(|(_, one)| one.group == *name);
            let own: Vec<String> = own.map(|(id, _)| id.clone()).collect();
            own.iter().skip(most).for_each(|id| {
                self.running.remove(id);
            });
            let zones = self.usable_zones(state, group);
            for number in own.len()..least {
                if let Some(zone) = zones.get(number % zones.len().max(1)) {
                    self.launch_instance(state, group, zone);
                }
            }
        }
    }

    fn usable_zones(&self, state: &State, group: &AutoscalingGroup) -> Vec<String> {
        let subnets = group.vpc_zone_identifier.iter().filter_map(Ref::id);
        let zones = subnets.filter_map(|id| match &living_body(state, &id)?.resource {
            Cloud::Subnet(subnet) => Some(subnet.availability_zone.clone()),
            _ => None,
        });
        zones
            .filter(|zone| !self.lost_zones.contains(zone))
            .collect()
    }

    fn launch_instance(&mut self, state: &State, group: &AutoscalingGroup, zone: &str) {
        let id = group.launch_template.launch_template_id.id();
        let Some(body) = id.and_then(|id| living_body(state, &id)) else {
            return;
        };
        let Cloud::LaunchTemplate(template) = &body.resource else {
            return;
        };
        self.launched += 1;
        let user_data = template.user_data.as_ref().and_then(|text| text.as_known());
        let instance = Instance {
            group: group.auto_scaling_group_name.clone(),
            zone: zone.to_owned(),
            version: latest_version(body),
            user_data: user_data.unwrap_or_default().to_owned(),
        };
        let id = format!("i-{:02}", self.launched);
        self.running.insert(id, instance);
    }

    /// A line for each.
    pub fn show_instances(&self, state: &State) -> String {
        let line = |(id, one): (&String, &Instance)| {
            let template = living_body(state, &Id::new("launch_template", one.group.as_str()));
            let current = template.is_some_and(|template| latest_version(template) == one.version);
            let age = if current { "up to date" } else { "out of date" };
            format!("{id}  {}  {}  {age}\n", one.group, one.zone)
        };
        self.running.iter().map(line).collect()
    }
}

fn latest_version(template: &Body) -> String {
    let version = template.attrs.get("latest_version");
    version.cloned().unwrap_or_default()
}
