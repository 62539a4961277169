//! A cluster in virtual time: Auto Scaling groups that launch what they lack, instances that boot and are terminated, pods
//! with disruption budgets, and the laws that hold at every action.

use node::config::Role;
use rolling_update::{
    Action, Condition, EtcdCluster, EtcdMember, Observed, RollingGroup, RollingInstance,
    RollingNode, Traffic, WarmInstance,
};
use std::collections::{BTreeMap, BTreeSet};

/// xorshift: the same lots for the same seed.
pub struct Lots(u64);

impl Lots {
    pub fn up_to(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if end == 0 { 0 } else { self.0 % end }
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.up_to(100) < percent
    }
}

pub struct Instance {
    pub seen: RollingInstance,
    /// When it changes by itself: Ready after its boot, gone after its termination.
    pub changes: i64,
    /// A person cordoned it.
    pub by_hand: bool,
    detached: bool,
}

/// An instance of a warm pool.
pub struct Warm {
    pub seen: WarmInstance,
    gone: i64,
    /// EC2 has terminated it, and Auto Scaling does not know.
    dead: bool,
}

pub struct Pod {
    workload: usize,
    /// The instance it runs on; none while it is Pending.
    instance: Option<String>,
    /// When it is Ready, or has left its instance.
    pub changes: i64,
    leaving: bool,
    /// It never ends once it is evicted or deleted: a finalizer, or a volume that cannot be unmounted.
    pub hangs: bool,
}

pub struct Fleet {
    pub now: i64,
    pub lots: Lots,
    pub groups: Vec<RollingGroup>,
    pub instances: BTreeMap<String, Instance>,
    pub warm: BTreeMap<String, Warm>,
    /// How many instances the warm pool of each group has.
    pools: BTreeMap<String, usize>,
    pub pods: Vec<Pod>,
    /// How many pods of each workload may be away at a time.
    budgets: Vec<usize>,
    launched: u64,
    pub boot: (i64, u64),
    /// The largest number of control planes away at once through the rolling update.
    pub broken_law: Option<String>,
    evictions: u64,
    /// Instances that AWS refuses to terminate, as a policy of somebody else does.
    pub kept: BTreeSet<String>,
    /// A group of control planes whose etcd member is not healthy, whatever happens.
    pub sick_member: Option<String>,
    /// Auto Scaling never notices that an instance of a warm pool is gone.
    pub lingers: bool,
    /// Pods may be lost: an instance is terminated with them on it.
    pub may_lose_pods: bool,
}

impl Fleet {
    pub fn new(seed: u64) -> Self {
        let mut lots = Lots(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..4 {
            lots.up_to(2);
        }
        let mut groups = Vec::new();
        let planes = [1, 3, 3, 5][lots.up_to(4) as usize];
        for number in 0..planes {
            groups.push(group(
                &format!("control-plane-{number}"),
                Role::ControlPlane,
                1,
                0,
                1,
            ));
        }
        for number in 0..=lots.up_to(3) {
            let desired = 2 + lots.up_to(8) as usize;
            let surge = lots.up_to(4) as usize;
            let unavailable = lots.up_to(3) as usize;
            let unavailable = if surge == 0 {
                unavailable.max(1)
            } else {
                unavailable
            };
            groups.push(group(
                &format!("nodes-{number}"),
                Role::Node,
                desired,
                surge,
                unavailable,
            ));
        }
        if lots.chance(30) {
            groups.push(group(
                "bastions",
                Role::Bastion,
                1,
                lots.up_to(2) as usize,
                1,
            ));
        }
        let mut fleet = Self {
            now: 1_000_000,
            lots,
            groups,
            instances: BTreeMap::new(),
            warm: BTreeMap::new(),
            pools: BTreeMap::new(),
            pods: Vec::new(),
            budgets: Vec::new(),
            launched: 0,
            boot: (40, 200),
            broken_law: None,
            evictions: 0,
            kept: BTreeSet::new(),
            sick_member: None,
            lingers: false,
            may_lose_pods: false,
        };
        for group in fleet.groups.clone() {
            for _ in 0..group.desired {
                let outdated = fleet.lots.chance(90);
                fleet.launch(
                    &group,
                    outdated.then(|| "an older launch template".to_owned()),
                    true,
                );
            }
        }
        for group in fleet.groups.clone() {
            if group.role == Role::Node && fleet.lots.chance(40) {
                let size = 1 + fleet.lots.up_to(3) as usize;
                fleet.pools.insert(group.name.clone(), size);
                for _ in 0..size {
                    let outdated = fleet.lots.chance(80);
                    let outdated = outdated.then(|| "an older launch template".to_owned());
                    fleet.launch_warm(&group.name, outdated);
                }
            }
        }
        for workload in 0..fleet.lots.up_to(5) as usize {
            fleet.budgets.push(1 + fleet.lots.up_to(2) as usize);
            for _ in 0..2 + fleet.lots.up_to(6) {
                fleet.pods.push(Pod {
                    workload,
                    instance: None,
                    changes: 0,
                    leaving: false,
                    hangs: false,
                });
            }
        }
        for _ in 0..3 {
            fleet.pass(100);
        }
        let workers: usize = fleet
            .groups
            .iter()
            .filter(|group| group.role == Role::Node)
            .map(|group| group.desired)
            .sum();
        if workers > 2
            && fleet.lots.chance(20)
            && let Some(instance) = fleet
                .instances
                .values_mut()
                .find(|one| one.seen.group == "nodes-0")
        {
            instance.by_hand = true;
            instance.seen.node.as_mut().unwrap().cordoned = true;
        }
        fleet
    }

    pub fn launch(&mut self, group: &RollingGroup, outdated: Option<String>, ready: bool) {
        self.launched += 1;
        let id = format!("i-{:04}", self.launched);
        let takes = self.boot.0 + self.lots.up_to(self.boot.1) as i64;
        let has_node = group.role != Role::Bastion;
        let seen = RollingInstance {
            id: id.clone(),
            group: group.name.clone(),
            outdated,
            condition: if ready {
                Condition::Ready
            } else {
                Condition::Booting
            },
            attached: true,
            node: (ready && has_node).then(|| node_of(&id)),
            traffic: if ready && group.role == Role::ControlPlane {
                Traffic::Served
            } else {
                Traffic::Withdrawn
            },
            hook_waits: false,
            launched: self.now,
        };
        let changes = self.now + takes;
        self.instances.insert(
            id,
            Instance {
                seen,
                changes,
                by_hand: false,
                detached: false,
            },
        );
    }

    fn launch_warm(&mut self, group: &str, outdated: Option<String>) {
        self.launched += 1;
        let id = format!("i-{:04}", self.launched);
        let seen = WarmInstance {
            id: id.clone(),
            group: group.to_owned(),
            outdated,
            leaving: false,
            hook_waits: false,
        };
        self.warm.insert(
            id,
            Warm {
                seen,
                gone: 0,
                dead: false,
            },
        );
    }

    /// Auto Scaling takes an instance of the pool before it launches one, and fills the pool again.
    fn launch_or_draw(&mut self, group: &RollingGroup) {
        let mut pool = self.warm.values();
        let is_ready = |one: &&Warm| !one.seen.leaving && !one.dead;
        let ready = pool.find(|one| one.seen.group == group.name && is_ready(one));
        let drawn = ready.map(|one| one.seen.id.clone());
        let drawn = drawn.and_then(|id| self.warm.remove(&id));
        self.launch(group, drawn.and_then(|one| one.seen.outdated), false);
    }

    fn fill_pools(&mut self) {
        let now = self.now;
        self.warm
            .retain(|_, one| !one.seen.leaving || one.gone > now);
        for (group, size) in self.pools.clone() {
            let pool = self.warm.values().filter(|one| one.seen.group == group);
            for _ in pool.filter(|one| !one.seen.leaving).count()..size {
                self.launch_warm(&group, None);
            }
        }
    }

    pub fn role(&self, id: &str) -> Role {
        let group = &self.instances[id].seen.group;
        self.groups
            .iter()
            .find(|one| one.name == *group)
            .unwrap()
            .role
    }

    /// Time passes: boots and terminations end, Auto Scaling launches what is missing, pods move.
    pub fn pass(&mut self, seconds: i64) {
        self.now += seconds;
        let gone: Vec<String> = self
            .instances
            .iter()
            .filter(|(_, one)| one.seen.condition == Condition::Leaving && one.changes <= self.now)
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            self.instances.remove(&id);
            for pod in self
                .pods
                .iter_mut()
                .filter(|pod| pod.instance.as_ref() == Some(&id))
            {
                (pod.instance, pod.leaving) = (None, false);
            }
        }
        for id in self.instances.keys().cloned().collect::<Vec<_>>() {
            let role = self.role(&id);
            let (now, instance) = (self.now, self.instances.get_mut(&id).unwrap());
            if instance.seen.condition == Condition::Booting && instance.changes <= now {
                instance.seen.condition = Condition::Ready;
                if role != Role::Bastion {
                    instance.seen.node = Some(node_of(&id));
                }
                if role == Role::ControlPlane {
                    instance.seen.traffic = Traffic::Served;
                }
            }
            if instance.seen.traffic == Traffic::Draining && instance.changes <= now {
                instance.seen.traffic = Traffic::Withdrawn;
            }
        }
        for group in self.groups.clone() {
            let counted = self
                .members(&group.name)
                .filter(|one| one.attached && one.condition != Condition::Leaving)
                .count();
            for _ in counted..group.desired {
                self.launch_or_draw(&group);
            }
        }
        self.fill_pools();
        self.schedule();
    }

    fn members<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a RollingInstance> {
        self.instances
            .values()
            .map(|one| &one.seen)
            .filter(move |one| one.group == group)
    }

    fn schedule(&mut self) {
        let workers: Vec<String> = self
            .instances
            .iter()
            .filter(|(id, one)| one.seen.is_schedulable() && self.role(id) == Role::Node)
            .map(|(id, _)| id.clone())
            .collect();
        let now = self.now;
        for number in 0..self.pods.len() {
            if self.pods[number].leaving && self.pods[number].changes <= now {
                self.pods[number].instance = None;
                self.pods[number].leaving = false;
            }
            if self.pods[number].instance.is_none() && !workers.is_empty() {
                let to = self.lots.up_to(workers.len() as u64) as usize;
                let ready = now + 5 + self.lots.up_to(20) as i64;
                let pod = &mut self.pods[number];
                (pod.instance, pod.changes) = (Some(workers[to].clone()), ready);
            }
        }
    }

    pub fn observe(&self) -> Observed {
        let instances = self.instances.values().map(|instance| {
            let mut seen = instance.seen.clone();
            if let Some(node) = &mut seen.node {
                let on_it = || {
                    self.pods
                        .iter()
                        .enumerate()
                        .filter(|(_, pod)| pod.instance.as_ref() == Some(&seen.id))
                };
                node.pods = on_it()
                    .filter(|(_, pod)| !pod.leaving)
                    .map(|(number, _)| format!("n/{number}"))
                    .collect();
                node.leaving_pods = on_it()
                    .filter(|(_, pod)| pod.leaving)
                    .map(|(number, _)| format!("n/{number}"))
                    .collect();
            }
            seen
        });
        let planes: Vec<&RollingGroup> = self
            .groups
            .iter()
            .filter(|group| group.role == Role::ControlPlane)
            .collect();
        // A member lives on its volume: it is healthy while its zone has a Ready control plane.
        let members = planes.iter().map(|group| {
            let holder = self
                .members(&group.name)
                .find(|one| one.condition == Condition::Ready);
            EtcdMember {
                name: group.name.clone(),
                instance: holder.map(|one| one.id.clone()),
                problem: (holder.is_none() || self.sick_member.as_ref() == Some(&group.name))
                    .then(|| "it does not answer".to_owned()),
            }
        });
        Observed {
            now: self.now,
            groups: self.groups.clone(),
            instances: instances.collect(),
            warm: self.warm.values().map(|one| one.seen.clone()).collect(),
            etcd: vec![EtcdCluster {
                name: "main".to_owned(),
                members: members.collect(),
            }],
            problems: BTreeMap::new(),
        }
    }

    /// Carries out an action; false if it is refused for good.
    pub fn act(&mut self, action: &Action) -> bool {
        self.check_laws(action);
        let now = self.now;
        match action {
            Action::Taint { node } => self.node(node).tainted = true,
            Action::Detach { instance } => {
                let instance = self.instances.get_mut(instance).unwrap();
                (instance.seen.attached, instance.detached) = (false, true);
                instance.seen.traffic = Traffic::Lost;
            }
            Action::Cordon { instance, mark } => {
                let node = self.node(instance);
                (node.cordoned, node.mark) = (true, Some(mark.clone()));
            }
            Action::NoteDrained { instance, mark } => self.node(instance).mark = Some(mark.clone()),
            Action::WithdrawTraffic { instance } => {
                let instance = self.instances.get_mut(instance).unwrap();
                (instance.seen.traffic, instance.changes) = (Traffic::Draining, now + 30);
            }
            Action::Evict { pods, .. } => pods.iter().for_each(|pod| self.evict(pod)),
            Action::RestoreTraffic { instance } => {
                self.instances.get_mut(instance).unwrap().seen.traffic = Traffic::Withdrawn;
            }
            Action::DeletePods { pods, .. } => pods.iter().for_each(|pod| self.end_pod(pod)),
            Action::Terminate { instance } if self.kept.contains(instance) => return false,
            Action::Terminate { instance } if self.lingers && self.warm.contains_key(instance) => {
                self.warm.get_mut(instance).unwrap().dead = true;
            }
            Action::Terminate { instance } if self.warm.contains_key(instance) => {
                let gone = now + 300;
                let warm = self.warm.get_mut(instance).unwrap();
                (warm.seen.leaving, warm.seen.hook_waits, warm.gone) = (true, true, gone);
            }
            Action::CompleteHook { instance } if self.warm.contains_key(instance) => {
                let gone = now + 20 + self.lots.up_to(60) as i64;
                let warm = self.warm.get_mut(instance).unwrap();
                (warm.seen.hook_waits, warm.gone) = (false, gone);
            }
            Action::Terminate { instance } => {
                let gone = now + 20 + self.lots.up_to(60) as i64;
                let instance = self.instances.get_mut(instance).unwrap();
                instance.seen.condition = Condition::Leaving;
                // Only members of a group have its hook, whose timeout is 300 s.
                instance.seen.hook_waits = instance.seen.attached;
                instance.changes = if instance.seen.attached {
                    now + 300
                } else {
                    gone
                };
            }
            Action::CompleteHook { instance } => {
                let gone = now + 20 + self.lots.up_to(60) as i64;
                let instance = self.instances.get_mut(instance).unwrap();
                (instance.seen.hook_waits, instance.changes) = (false, gone);
            }
            Action::Release { node, uncordon } => {
                let node = self.node(node);
                (node.mark, node.tainted) = (None, false);
                if *uncordon {
                    node.cordoned = false;
                }
            }
        }
        true
    }

    fn evict(&mut self, pod: &str) {
        self.evictions += 1;
        let number: usize = pod.trim_start_matches("n/").parse().unwrap();
        let workload = self.pods[number].workload;
        let is_away = |pod: &&Pod| {
            pod.workload == workload
                && (pod.instance.is_none() || pod.leaving || pod.changes > self.now)
        };
        if self.pods.iter().filter(is_away).count() < self.budgets[workload] {
            self.end_pod(pod);
        }
    }

    fn end_pod(&mut self, pod: &str) {
        let number: usize = pod.trim_start_matches("n/").parse().unwrap();
        let takes = 2 + self.lots.up_to(25) as i64;
        let pod = &mut self.pods[number];
        let ends = if pod.hangs {
            i64::MAX
        } else {
            self.now + takes
        };
        (pod.leaving, pod.changes) = (true, ends);
    }

    fn node(&mut self, name: &str) -> &mut RollingNode {
        self.instances
            .get_mut(name)
            .unwrap()
            .seen
            .node
            .as_mut()
            .unwrap()
    }

    /// True if the pool of its group has an outdated instance.
    fn may_draw_outdated(&self, instance: &str) -> bool {
        let group = &self.instances[instance].seen.group;
        let mut pool = self.warm.values();
        pool.any(|one| one.seen.group == *group && one.seen.is_outdated() && !one.dead)
    }

    /// Never more than allowed away, never two control planes, nothing terminated that is current or still has pods.
    fn check_laws(&mut self, action: &Action) {
        if let Some(warm) = action.instance().and_then(|id| self.warm.get(id)) {
            let fits = match action {
                Action::Terminate { .. } => warm.seen.is_outdated() && !warm.dead,
                Action::CompleteHook { .. } => warm.seen.hook_waits,
                _ => false,
            };
            let broken = (!fits).then(|| format!("{action:?} in a warm pool"));
            self.broken_law = self.broken_law.take().or(broken);
            return;
        }
        let broken = match action {
            Action::Detach { instance } if self.may_draw_outdated(instance) => {
                Some(format!("the replacement of {instance} may be outdated"))
            }
            Action::Cordon { instance, .. } => {
                let seen = &self.instances[instance].seen;
                if seen.mark().is_some() {
                    // Cordoned again, after a person uncordoned it.
                    return;
                }
                let group = self
                    .groups
                    .iter()
                    .find(|one| one.name == seen.group)
                    .unwrap();
                let available = self
                    .members(&group.name)
                    .filter(|one| one.is_available())
                    .count();
                let floor = group.desired.saturating_sub(group.max_unavailable);
                let planes = self.instances.iter().filter(|(id, one)| {
                    self.role(id) == Role::ControlPlane
                        && *id != instance
                        && one.seen.condition != Condition::Ready
                });
                if self.may_draw_outdated(instance) {
                    Some(format!("the replacement of {instance} may be outdated"))
                } else if seen.is_available() && available <= floor {
                    Some(format!(
                        "{available} available in {} at the cordon of {instance}",
                        group.name
                    ))
                } else if group.role == Role::ControlPlane && planes.count() > 0 {
                    Some(format!("a second control plane: {instance}"))
                } else {
                    None
                }
            }
            Action::Terminate { instance } => {
                let seen = &self.instances[instance].seen;
                let pods = self
                    .pods
                    .iter()
                    .filter(|pod| pod.instance.as_ref() == Some(instance))
                    .count();
                if seen.outdated.is_none() {
                    Some(format!("{instance} is current"))
                } else if pods > 0 && self.role(instance) == Role::Node && !self.may_lose_pods {
                    Some(format!("{instance} has {pods} pods"))
                } else {
                    None
                }
            }
            _ => None,
        };
        self.broken_law = self.broken_law.take().or(broken);
    }
}

pub fn group(
    name: &str,
    role: Role,
    desired: usize,
    max_surge: usize,
    max_unavailable: usize,
) -> RollingGroup {
    RollingGroup {
        name: name.to_owned(),
        role,
        desired,
        max_surge,
        max_unavailable,
        launch_failure: None,
    }
}

pub fn node_of(id: &str) -> RollingNode {
    RollingNode {
        name: id.to_owned(),
        ..RollingNode::default()
    }
}
