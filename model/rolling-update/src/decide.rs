//! What a rolling update does next.

use crate::quorum::{Survival, would_survive};
use crate::{
    Condition, Mark, Observed, OnDrainTimeout, Record, RollingGroup, RollingInstance, RollingNode,
    Settings, Stop, Traffic, WarmInstance,
};
use node::config::Role;
use std::collections::{BTreeMap, BTreeSet};

/// One change of an instance or its Node. Each can be repeated without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put the taint on a Node that makes the scheduler prefer others (PreferNoSchedule).
    Taint {
        /// The Node.
        node: String,
    },
    /// Take the instance out of its Auto Scaling group, which launches another for it.
    Detach {
        /// The instance.
        instance: String,
    },
    /// Cordon the Node and mark it, in one write.
    Cordon {
        /// The instance.
        instance: String,
        /// What the Node is marked with.
        mark: Mark,
    },
    /// Stop sending clients of the API to the instance: targets are deregistered, names withdrawn.
    WithdrawTraffic {
        /// The instance.
        instance: String,
    },
    /// Register the instance in its target groups again.
    RestoreTraffic {
        /// The instance.
        instance: String,
    },
    /// Ask the API to evict the pods.
    Evict {
        /// The instance.
        instance: String,
        /// `NAMESPACE/NAME`.
        pods: Vec<String>,
    },
    /// Delete the pods, whatever their budgets say.
    DeletePods {
        /// The instance.
        instance: String,
        /// `NAMESPACE/NAME`.
        pods: Vec<String>,
    },
    /// Note on the Node that its drain is over.
    NoteDrained {
        /// The instance.
        instance: String,
        /// The mark with the time.
        mark: Mark,
    },
    /// Terminate the instance.
    Terminate {
        /// The instance.
        instance: String,
    },
    /// Complete the lifecycle hook for which the termination of the instance waits.
    CompleteHook {
        /// The instance.
        instance: String,
    },
    /// Take mark and taint off a Node again, let clients of the API be sent to it, and uncordon it unless somebody else
    /// had cordoned it.
    Release {
        /// The Node.
        node: String,
        /// True if it is uncordoned.
        uncordon: bool,
    },
}

impl Action {
    /// The instance that it changes, or whose Node or pods it changes.
    pub fn instance(&self) -> Option<&str> {
        match self {
            Self::Taint { .. } | Self::Release { .. } => None,
            Self::Detach { instance }
            | Self::Cordon { instance, .. }
            | Self::WithdrawTraffic { instance }
            | Self::RestoreTraffic { instance }
            | Self::Evict { instance, .. }
            | Self::DeletePods { instance, .. }
            | Self::NoteDrained { instance, .. }
            | Self::Terminate { instance }
            | Self::CompleteHook { instance } => Some(instance),
        }
    }

    /// The Node, if it knows only that.
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::Taint { node } | Self::Release { node, .. } => Some(node),
            _ => None,
        }
    }

    /// The instance or the Node, for people.
    pub fn subject(&self) -> &str {
        self.instance().or(self.node()).unwrap_or_default()
    }
}

/// Where a rolling update stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It goes on: look again after the actions.
    Going,
    /// Nothing is left to do.
    Done,
    /// Nothing is under way any more, and nothing else begins.
    Stopped(Stop),
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Changes to make, in this order.
    pub actions: Vec<Action>,
    /// What is waited for, by instance or group.
    pub waits: BTreeMap<String, String>,
    /// Where the rolling update stands.
    pub state: State,
}

/// What one process remembers between decisions. After a restart it begins anew: times of waiting only get longer.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Since when each thing that may end in a stop has been seen.
    since: BTreeMap<String, i64>,
    /// The first reason to stop.
    stop: Option<Stop>,
    /// Instances with a change that failed for good.
    failed_instances: BTreeSet<String>,
    /// Nodes with a change that failed for good.
    failed_nodes: BTreeSet<String>,
    /// Instances that were terminated. Auto Scaling may list one of a warm pool as waiting until its next health check, and makes none
    /// while those are suspended.
    ended: BTreeSet<String>,
}

impl Progress {
    /// Begins no further instance: those under way end.
    pub fn stop(&mut self, reason: Stop) {
        self.stop.get_or_insert(reason);
    }

    /// Stops because an action failed in a way that repeating does not mend. Nothing else is done to its instance, and the
    /// Node is released.
    pub fn fail(&mut self, action: &Action, reason: &str) {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        self.failed_instances.extend(owned(action.instance()));
        self.failed_nodes.extend(owned(action.node()));
        self.stop(Stop::Failed(format!("{}: {reason}", action.subject())));
    }

    /// Notes that an action was carried out.
    pub fn succeed(&mut self, action: &Action) {
        if let Action::Terminate { instance } = action {
            self.ended.insert(instance.clone());
        }
    }

    /// True if an instance of a warm pool is yet to be terminated.
    fn must_end(&self, instance: &WarmInstance) -> bool {
        instance.is_outdated() && !self.ended.contains(&instance.id)
    }

    /// True if the action, or one like it, failed for good.
    fn has_failed_at(&self, action: &Action) -> bool {
        let instance = action.instance();
        instance.is_some_and(|id| self.failed_instances.contains(id))
            || action
                .node()
                .is_some_and(|node| self.failed_nodes.contains(node))
    }

    /// True if a change of the instance or of its Node failed for good.
    fn has_failed(&self, instance: &RollingInstance) -> bool {
        let node = instance.node.as_ref();
        self.failed_instances.contains(&instance.id)
            || node.is_some_and(|node| self.failed_nodes.contains(&node.name))
    }

    /// How long that has been so; 0 the first time.
    fn lasted(&mut self, what: &str, now: i64, seen: &mut BTreeSet<String>) -> i64 {
        seen.insert(what.to_owned());
        now - *self.since.entry(what.to_owned()).or_insert(now)
    }
}

/// What a rolling update does next, given what is observed now.
pub fn decide(
    observed: &Observed,
    record: &Record,
    settings: &Settings,
    progress: &mut Progress,
) -> Decision {
    let mut deciding = Deciding {
        observed,
        record,
        settings,
        actions: Vec::new(),
        waits: BTreeMap::new(),
        seen: BTreeSet::new(),
        stuck: BTreeSet::new(),
        progress,
    };
    let calm = deciding.watch_problems();
    deciding.continue_those_under_way();
    let replaced = deciding.watch_replacements();
    deciding.watch_terminations();
    let stopped = deciding.progress.stop.is_some();
    if calm && !stopped {
        deciding.begin();
    }
    deciding.finish(calm && replaced)
}

struct Deciding<'a> {
    observed: &'a Observed,
    record: &'a Record,
    settings: &'a Settings,
    progress: &'a mut Progress,
    actions: Vec<Action>,
    waits: BTreeMap<String, String>,
    seen: BTreeSet<String>,
    /// Instances whose termination takes too long: nothing waits for them.
    stuck: BTreeSet<String>,
}

impl<'a> Deciding<'a> {
    /// True if no problem is there that was not there before. One that lasts stops the rolling update.
    fn watch_problems(&mut self) -> bool {
        let mut calm = true;
        for (key, text) in &self.observed.problems {
            if self.record.known_problems.contains_key(key) {
                continue;
            }
            calm = false;
            self.waits.insert(key.clone(), text.clone());
            let lasted = self.progress.lasted(key, self.observed.now, &mut self.seen);
            if lasted >= self.settings.validation_timeout {
                self.progress.stop(Stop::Problem(text.clone()));
            }
        }
        calm
    }

    /// Goes on with every instance whose Node is marked.
    fn continue_those_under_way(&mut self) {
        for instance in &self.observed.instances {
            if instance.condition == Condition::Leaving {
                self.complete_hook(instance);
            } else if let Some(mark) = instance.mark() {
                self.continue_with(instance, mark);
            } else if instance.traffic == Traffic::Lost {
                let instance = instance.id.clone();
                self.actions.push(Action::RestoreTraffic { instance });
            }
        }
        let waiting = self.observed.warm.iter();
        for instance in waiting.filter(|one| one.leaving && one.hook_waits) {
            let instance = instance.id.clone();
            self.actions.push(Action::CompleteHook { instance });
        }
        self.drop_failed_actions();
    }

    /// What failed for good is not tried again.
    fn drop_failed_actions(&mut self) {
        let progress = &self.progress;
        self.actions
            .retain(|action| !progress.has_failed_at(action));
    }

    /// Ends the outdated instances of warm pools: Auto Scaling would take them for those that are replaced.
    fn end_warm_instances(&mut self) {
        let warm = self.observed.warm.iter();
        for instance in warm.filter(|one| self.progress.must_end(one)) {
            let id = instance.id.clone();
            self.actions.push(Action::Terminate { instance: id });
        }
        self.drop_failed_actions();
    }

    /// An instance of the group's warm pool that might replace one, and is outdated.
    fn outdated_warm(&self, group: &RollingGroup) -> Option<&'a WarmInstance> {
        let mut warm = self.observed.warm.iter();
        warm.find(|one| self.progress.must_end(one) && one.group == group.name)
    }

    /// Waits for the outdated instances of a group's warm pool, which stops the rolling update if it takes too long.
    fn wait_for_warm(&mut self, group: &RollingGroup, instance: &WarmInstance) {
        let text = "the outdated instances of its warm pool to end".to_owned();
        self.waits.insert(group.name.clone(), text);
        let key = format!("warm pool of {}", group.name);
        let now = self.observed.now;
        let lasted = self.progress.lasted(&key, now, &mut self.seen);
        if lasted >= self.settings.validation_timeout {
            let instance = instance.id.clone();
            self.progress.stop(Stop::NotGone { instance });
        }
    }

    /// Completes the hook of an instance that has nothing left to be drained. One that somebody else terminates, with pods
    /// on it, keeps the time that the hook gives them.
    fn complete_hook(&mut self, instance: &RollingInstance) {
        let is_drained = instance.mark().is_some_and(|mark| mark.drained.is_some());
        if instance.hook_waits
            && (is_drained || instance.node.is_none() || self.settings.cloud_only)
        {
            let instance = instance.id.clone();
            self.actions.push(Action::CompleteHook { instance });
        }
    }

    fn continue_with(&mut self, instance: &'a RollingInstance, mark: &Mark) {
        let Some(node) = &instance.node else { return };
        let id = || instance.id.clone();
        if instance.outdated.is_none() || self.progress.has_failed(instance) {
            // It became current, or the change that made it outdated was taken back, or it cannot be replaced.
            return self.release(node, mark);
        }
        if !node.cordoned {
            // Somebody uncordoned it meanwhile, and pods may have come.
            let mark = Mark {
                drained: None,
                ..mark.clone()
            };
            let instance = id();
            return self.actions.push(Action::Cordon { instance, mark });
        }
        if instance.traffic == Traffic::Served {
            let instance = id();
            self.actions.push(Action::WithdrawTraffic { instance });
        }
        let Some(drained) = mark.drained else {
            return self.drain(&instance.id, node, mark);
        };
        if matches!(instance.traffic, Traffic::Served | Traffic::Draining) {
            let text = "clients of the API to leave it".to_owned();
            self.waits.insert(id(), text);
        } else if self.observed.now - drained < self.settings.post_drain_delay {
            let text = "the delay after its drain".to_owned();
            self.waits.insert(id(), text);
        } else if self.may_lose(instance) {
            self.actions.push(Action::Terminate { instance: id() });
        } else if self.progress.stop.is_some() {
            self.release(node, mark);
        }
    }

    /// Evicts what is left on a Node, or notes that nothing is. After the drain timeout the settings decide. The time counts
    /// from when this process saw the drain: one that goes on later gives pods their time again.
    fn drain(&mut self, instance: &str, node: &RollingNode, mark: &Mark) {
        let (id, pods) = (instance.to_owned(), node.pods.clone());
        let left = pods.len() + node.leaving_pods.len();
        let key = format!("drain of {instance}");
        let lasted = self
            .progress
            .lasted(&key, self.observed.now, &mut self.seen);
        let timeout = self.settings.drain_timeout;
        let is_over = match self.settings.on_drain_timeout {
            OnDrainTimeout::Fail if left > 0 && lasted >= timeout => {
                let pods = [pods, node.leaving_pods.clone()].concat();
                self.progress
                    .stop(Stop::DrainTimeout { instance: id, pods });
                return self.release(node, mark);
            }
            OnDrainTimeout::Fail => false,
            // Deleted pods have the same time once more to end.
            OnDrainTimeout::Force => lasted >= 2 * timeout,
            OnDrainTimeout::Skip => lasted >= timeout,
        };
        if left == 0 || is_over {
            let mark = Mark {
                drained: Some(self.observed.now),
                ..mark.clone()
            };
            self.actions
                .push(Action::NoteDrained { instance: id, mark });
            return;
        }
        let text = match left {
            1 => "1 pod to leave".to_owned(),
            several => format!("{several} pods to leave"),
        };
        self.waits.insert(id.clone(), text);
        if !pods.is_empty() {
            self.actions.push(if lasted >= timeout {
                Action::DeletePods { instance: id, pods }
            } else {
                Action::Evict { instance: id, pods }
            });
        }
    }

    fn release(&mut self, node: &RollingNode, mark: &Mark) {
        self.actions.push(Action::Release {
            node: node.name.clone(),
            uncordon: !mark.was_cordoned,
        });
    }

    /// Whether etcd survives that instance's loss. A refusal that lasts stops the rolling update.
    fn may_lose(&mut self, instance: &RollingInstance) -> bool {
        match would_survive(&self.observed.etcd, &instance.id) {
            Ok(Survival::QuorumKept | Survival::Outage) => true,
            Err(refusal) => {
                let text = refusal.to_string();
                self.waits.insert(instance.id.clone(), text.clone());
                let lasted = self
                    .progress
                    .lasted(&text, self.observed.now, &mut self.seen);
                if lasted >= self.settings.validation_timeout {
                    self.progress.stop(Stop::Etcd(text));
                }
                false
            }
        }
    }

    /// True if every group has all its instances, and all are Ready. What takes too long stops the rolling update.
    fn watch_replacements(&mut self) -> bool {
        let mut complete = true;
        for group in &self.observed.groups {
            let mut counted = 0;
            for instance in self.instances_of(group) {
                if !instance.attached || instance.condition == Condition::Leaving {
                    continue;
                }
                counted += 1;
                if instance.condition == Condition::Ready || instance.outdated.is_some() {
                    continue;
                }
                complete = false;
                self.waits
                    .insert(instance.id.clone(), "its Node to be Ready".to_owned());
                let age = match instance.condition {
                    Condition::Booting => self.observed.now - instance.launched,
                    _ => self
                        .progress
                        .lasted(&instance.id, self.observed.now, &mut self.seen),
                };
                if age >= self.settings.validation_timeout {
                    self.progress.stop(Stop::NotReady {
                        instance: instance.id.clone(),
                        group: group.name.clone(),
                    });
                }
            }
            if counted < group.desired {
                complete = false;
                let lacking = group.desired - counted;
                self.waits.insert(
                    group.name.clone(),
                    match lacking {
                        1 => "1 instance to be launched".to_owned(),
                        several => format!("{several} instances to be launched"),
                    },
                );
                let key = format!("group {}", group.name);
                let lasted = self
                    .progress
                    .lasted(&key, self.observed.now, &mut self.seen);
                if lasted >= self.settings.validation_timeout {
                    self.progress.stop(Stop::NoCapacity {
                        group: group.name.clone(),
                        failure: group.launch_failure.clone(),
                    });
                }
            }
        }
        complete
    }

    /// A termination that takes too long stops the rolling update.
    fn watch_terminations(&mut self) {
        for instance in &self.observed.instances {
            if instance.condition != Condition::Leaving {
                continue;
            }
            let key = format!("termination of {}", instance.id);
            let lasted = self
                .progress
                .lasted(&key, self.observed.now, &mut self.seen);
            if lasted >= self.settings.validation_timeout {
                self.stuck.insert(instance.id.clone());
                let instance = instance.id.clone();
                self.progress.stop(Stop::NotGone { instance });
            }
        }
    }

    fn instances_of(
        &self,
        group: &RollingGroup,
    ) -> impl Iterator<Item = &'a RollingInstance> + use<'a> {
        let (instances, name) = (&self.observed.instances, group.name.clone());
        instances
            .iter()
            .filter(move |instance| instance.group == name)
    }

    /// Begins with as many further instances as may be away. Bastions come first, then control planes, then nodes; the
    /// groups of one role side by side.
    fn begin(&mut self) {
        self.end_warm_instances();
        let under_way = self
            .observed
            .instances
            .iter()
            .filter(|one| one.is_under_way());
        let mut room = self.settings.parallelism.saturating_sub(under_way.count());
        let mut schedulable = self.schedulable_workers();
        for role in [Role::Bastion, Role::ControlPlane, Role::Node] {
            let observed = self.observed;
            let groups: Vec<&RollingGroup> = observed
                .groups
                .iter()
                .filter(|group| group.role == role)
                .collect();
            if groups.iter().all(|group| self.is_rolled(group)) {
                continue;
            }
            if role == Role::ControlPlane {
                self.begin_control_plane(&groups);
            } else {
                for group in groups {
                    if let Some(instance) = self.outdated_warm(group) {
                        self.wait_for_warm(group, instance);
                        continue;
                    }
                    self.taint_outdated(group);
                    self.begin_group(group, &mut room, &mut schedulable);
                }
            }
            return;
        }
    }

    /// True if nothing of the group is left to be replaced, and all its instances are there and Ready.
    fn is_rolled(&self, group: &RollingGroup) -> bool {
        let mut instances = self.instances_of(group);
        let ready = self
            .instances_of(group)
            .filter(|one| one.attached && one.condition == Condition::Ready);
        ready.count() >= group.desired
            && !instances.any(|one| one.is_outdated() || one.is_under_way())
            && self.outdated_warm(group).is_none()
    }

    /// Control planes go one at a time, in all their groups together, and only while every other is Ready.
    fn begin_control_plane(&mut self, groups: &[&RollingGroup]) {
        let all: Vec<&RollingInstance> = groups
            .iter()
            .flat_map(|group| self.instances_of(group))
            .collect();
        if all.iter().any(|one| one.is_under_way()) {
            return;
        }
        let desired: usize = groups.iter().map(|group| group.desired).sum();
        let attached = all.iter().filter(|one| one.attached).count();
        // A broken one goes first, and may go although it is not Ready: its replacement is the way to mend it.
        let broken = all.iter().filter(|one| one.condition != Condition::Ready);
        let broken: Vec<&RollingInstance> = broken.copied().collect();
        let next = match broken.as_slice() {
            [] if attached >= desired => all.iter().copied().find(|one| one.is_outdated()),
            [one] if one.is_outdated() => Some(*one),
            [_, _, ..] => return self.wait_for_control_planes(&broken),
            _ => None,
        };
        if let Some(next) = next
            && self.may_lose(next)
        {
            self.begin_instance(next);
        }
    }

    /// Waits until no more than one control plane is not Ready, which stops the rolling update if it takes too long.
    fn wait_for_control_planes(&mut self, broken: &[&RollingInstance]) {
        for one in broken {
            let text = "its Node to be Ready: control planes go one at a time".to_owned();
            self.waits.insert(one.id.clone(), text);
        }
        let text = not_ready_text(broken);
        let lasted = self
            .progress
            .lasted("control planes", self.observed.now, &mut self.seen);
        if lasted >= self.settings.validation_timeout {
            self.progress.stop(Stop::Etcd(text));
        }
    }

    /// Steers pods away from Nodes that are going to be drained.
    fn taint_outdated(&mut self, group: &RollingGroup) {
        for instance in self.instances_of(group) {
            if let Some(node) = &instance.node
                && instance.is_outdated()
                && !node.tainted
            {
                self.actions.push(Action::Taint {
                    node: node.name.clone(),
                });
            }
        }
    }

    /// How many workers take new pods. The last of them is not drained while others come back: its pods, and those of
    /// every other drain, would have nowhere to go.
    fn schedulable_workers(&self) -> usize {
        let observed = self.observed;
        let is_worker = |one: &&RollingInstance| {
            let mut groups = observed.groups.iter();
            groups.any(|group| group.name == one.group && group.role == Role::Node)
        };
        let workers = observed.instances.iter().filter(is_worker);
        workers.filter(|one| one.is_schedulable()).count()
    }

    /// True if a worker is about to be replaced or launched.
    fn more_workers_come(&self) -> bool {
        let mut groups = self
            .observed
            .groups
            .iter()
            .filter(|group| group.role == Role::Node);
        let cordons = self
            .actions
            .iter()
            .any(|action| matches!(action, Action::Cordon { .. } | Action::Detach { .. }));
        cordons
            || groups.any(|group| {
                let available = self
                    .instances_of(group)
                    .filter(|one| one.attached && one.is_available());
                available.count() < group.desired
            })
    }

    fn begin_group(&mut self, group: &RollingGroup, room: &mut usize, schedulable: &mut usize) {
        let instances: Vec<&RollingInstance> = self.instances_of(group).collect();
        let is_proven = instances
            .iter()
            .any(|one| one.attached && one.outdated.is_none() && one.condition == Condition::Ready);
        let (surge, most) = if is_proven {
            (group.max_surge, usize::MAX)
        } else {
            // The first instance of a new shape alone: if it does not join, only one was touched.
            (group.max_surge.min(1), 1)
        };
        self.surge(group, &instances, surge);
        let under_way = instances.iter().filter(|one| one.is_under_way()).count();
        let mut may_begin = most.saturating_sub(under_way).min(*room);
        let available = instances.iter().filter(|one| one.is_available()).count();
        let mut may_go =
            available.saturating_sub(group.desired.saturating_sub(group.max_unavailable));
        let mut candidates: Vec<&RollingInstance> = instances
            .iter()
            .filter(|one| one.is_outdated() && !one.is_under_way())
            .copied()
            .collect();
        // Those that are not Ready first: nothing is lost with them. Detached ones last: their replacements are there.
        candidates.sort_by_key(|one| {
            (
                one.is_available(),
                !one.attached,
                one.launched,
                one.id.clone(),
            )
        });
        for instance in candidates {
            if may_begin == 0 {
                return;
            }
            if instance.is_available() {
                let is_last =
                    *schedulable == 1 && instance.is_schedulable() && self.more_workers_come();
                if may_go == 0 || is_last {
                    return;
                }
                may_go -= 1;
                *schedulable -= usize::from(instance.is_schedulable());
            }
            *room -= 1;
            may_begin -= 1;
            self.begin_instance(instance);
        }
    }

    /// Detaches instances, so that their replacements are there before they go.
    fn surge(&mut self, group: &RollingGroup, instances: &[&RollingInstance], surge: usize) {
        let outdated = instances.iter().filter(|one| one.is_outdated()).count();
        let detached = instances
            .iter()
            .filter(|one| one.is_outdated() && !one.attached)
            .count();
        let wanted = surge.min(outdated).min(group.desired);
        let attached = instances.iter().filter(|one| {
            one.attached && one.is_outdated() && !one.is_under_way() && one.is_available()
        });
        for instance in attached.take(wanted.saturating_sub(detached)) {
            self.actions.push(Action::Detach {
                instance: instance.id.clone(),
            });
        }
    }

    fn begin_instance(&mut self, instance: &RollingInstance) {
        let id = instance.id.clone();
        // Without a Node there is nothing to mark. What the instance serves need not be withdrawn before: Auto Scaling deregisters a member
        // from load balancers, classic ones too, and waits until its connections have drained, before the hook holds its termination
        // (https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html). A control plane is always a member, since
        // control planes never surge.
        let Some(node) = instance.node.as_ref().filter(|_| !self.settings.cloud_only) else {
            return self.actions.push(Action::Terminate { instance: id });
        };
        let mark = Mark {
            operation: self.record.operation.clone(),
            since: self.observed.now,
            was_cordoned: node.cordoned,
            drained: None,
        };
        self.actions.push(Action::Cordon { instance: id, mark });
    }

    /// The decision, once everything was looked at.
    fn finish(mut self, quiet: bool) -> Decision {
        let seen = std::mem::take(&mut self.seen);
        self.progress.since.retain(|what, _| seen.contains(what));
        let instances = &self.observed.instances;
        let is_waiting = instances.iter().any(|one| {
            one.is_under_way() && !self.stuck.contains(&one.id) && !self.progress.has_failed(one)
        });
        let stop = self.progress.stop.clone();
        let is_outdated = instances.iter().any(RollingInstance::is_outdated)
            || self
                .observed
                .warm
                .iter()
                .any(|one| self.progress.must_end(one));
        if stop.is_some() || !is_outdated {
            self.release_taints();
        }
        let ends = self.actions.is_empty() && !is_waiting;
        let state = match stop {
            Some(stop) if ends => State::Stopped(stop),
            None if ends && !is_outdated && quiet => State::Done,
            _ => State::Going,
        };
        Decision {
            actions: self.actions,
            waits: self.waits,
            state,
        }
    }

    fn release_taints(&mut self) {
        for instance in &self.observed.instances {
            if let Some(node) = &instance.node
                && node.tainted
                && node.mark.is_none()
                && instance.condition != Condition::Leaving
                && !self.progress.failed_nodes.contains(&node.name)
            {
                self.actions.push(Action::Release {
                    node: node.name.clone(),
                    uncordon: false,
                });
            }
        }
    }
}

/// The control planes that are not Ready, in words.
pub(crate) fn not_ready_text(broken: &[&RollingInstance]) -> String {
    let ids: Vec<&str> = broken.iter().map(|one| one.id.as_str()).collect();
    format!("control planes {} are not Ready", ids.join(", "))
}
