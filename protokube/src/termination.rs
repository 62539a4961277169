//! Role termination: drains Nodes before AWS ends their instances, and then lets Auto Scaling go on. Each control plane reads the
//! queue. A message stays in it until everything that it asks for is done, so any of them continues what another began. A message
//! says only where to look: whether an instance ends is asked of EC2 and of Auto Scaling.

mod maintenance;
mod voters;

use crate::limited_log::LimitedLog;
use anyhow::Context;
use aws_client::ec2_query::{Ec2QueryClient, Instance, Queue, QueueMessage};
use aws_client::store::Store;
use drain::{Drain, cordon_patch, drain_of, drained_since, merge_patches, pod_name};
use engine::error_chain;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{is_instance, untrusted_excerpt};
use node::config::{NodeConfig, Termination};
use node::names::{CLUSTER_TAG, INSTANCE_GROUP_TAG, TERMINATION_ANNOTATION};
use node::report::Status;
use node::termination::{
    Announcement, Cause, Confirmation, Reaction, SeenByAws, others_have_quorum, read_announcements,
};
use protokube_role::log::Log;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Name of the role in log lines.
const STAGE: &str = "termination";

/// Tag of instances of control planes.
const CONTROL_PLANE_TAG: &str = "k8s.io/role/control-plane";

/// Label of Nodes of control planes.
const CONTROL_PLANE_LABEL: &str = "node-role.kubernetes.io/control-plane";

/// Lease of the control plane that ends next.
const LEASE: &str = node::protokube::TERMINATION_LEASE;

/// Value of the label that takes a Node out of load balancers.
pub(crate) const EXCLUDED_BY: &str = "termination";

/// Beginning of the keys of all taints that this role sets.
pub(crate) const TAINT_PREFIX: &str = "aws-node-termination-handler/";

/// Shortest time between two lines about refused messages with one cause.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Counts lines about refused messages, by cause.
type RefusalLog = LimitedLog<String>;

/// Names of pods in one log line.
const NAMED_PODS: usize = 5;

/// Intervals of the role.
#[derive(Clone, Copy, Debug)]
pub struct TerminationPace {
    /// Time for which SQS waits for a message.
    pub wait: Duration,
    /// Time after which a message that is not done is received again.
    pub again: Duration,
}

impl Default for TerminationPace {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(15),
            again: Duration::from_secs(5),
        }
    }
}

/// What the role works with.
pub struct TerminationRole<'a> {
    pub client: Client,
    pub ec2: &'a Ec2QueryClient,
    pub config: &'a NodeConfig,
    /// State store at the cluster's base.
    pub store: &'a Store,
    pub settings: &'a Termination,
    pub pace: TerminationPace,
    pub clock: fn() -> OffsetDateTime,
    pub log: &'a Log,
}

/// Whether a message is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    Pending,
}

impl TerminationRole<'_> {
    /// Handles messages until SQS fails. An error about one instance does not hold up the others: its message is received again.
    pub async fn handle_messages(&self) -> anyhow::Result<()> {
        let queue = Queue {
            account: self.settings.account.clone(),
            name: self.settings.queue.clone(),
        };
        let refusals = RefusalLog::new(self.log.clone(), STAGE, LOG_INTERVAL);
        let mut done = Vec::new();
        loop {
            let TerminationPace { wait, again } = self.pace;
            let messages = self.ec2.receive_messages(&queue, wait, again).await?;
            for message in messages {
                let progress = self.handle_message(&message, &refusals, &mut done).await;
                if progress == Progress::Done {
                    self.ec2.delete_message(&queue, &message.receipt).await?;
                }
            }
            refusals.log_counted();
            done.retain(|announcement| announcement.is_current((self.clock)()));
        }
    }

    /// One round over what a message announces. `done`: what of its announcements is over, while others are not.
    async fn handle_message(
        &self,
        message: &QueueMessage,
        refusals: &RefusalLog,
        done: &mut Vec<Announcement>,
    ) -> Progress {
        let announcements = match read_announcements(&message.body) {
            Ok(announcements) => announcements,
            Err(error) => {
                let detail = untrusted_excerpt(&error_chain(&error));
                refusals.log_or_count("unreadable".to_owned(), Status::Failed, None, &detail);
                return Progress::Done;
            }
        };
        let mut progress = Progress::Done;
        for announcement in announcements {
            if done.contains(&announcement) {
                continue;
            }
            if !announcement.is_current((self.clock)()) {
                write_refusal(refusals, &announcement, "it is not of now");
                continue;
            }
            match self.handle_announcement(&announcement, refusals).await {
                Ok(Progress::Done) => done.push(announcement),
                Ok(Progress::Pending) => progress = Progress::Pending,
                Err(error) => {
                    let detail = format!("{}: {error:#}", announcement.cause);
                    self.write_log(Status::Failed, &announcement, &detail);
                    progress = Progress::Pending;
                }
            }
        }
        progress
    }

    async fn handle_announcement(
        &self,
        announcement: &Announcement,
        refusals: &RefusalLog,
    ) -> anyhow::Result<Progress> {
        // EventBridge sends the events of all instances of the account.
        let Some(instance) = self.find_instance(&announcement.instance).await? else {
            return Ok(Progress::Done);
        };
        let group = instance.tags.get(INSTANCE_GROUP_TAG);
        let group = group.map(String::as_str).unwrap_or_default();
        let reaction = announcement.reaction(self.settings, group);
        if reaction == Reaction::Ignore {
            return Ok(Progress::Done);
        }
        match self.confirm(announcement, &instance).await? {
            Confirmation::Confirmed => {}
            Confirmation::NotYet => return Ok(Progress::Pending),
            Confirmation::Refused(why) => {
                write_refusal(refusals, announcement, &why);
                return Ok(Progress::Done);
            }
        }
        let hook = matches!(announcement.cause, Cause::LifecycleHook { .. });
        if hook && instance.state != "running" {
            return self.complete(announcement, "the instance has ended").await;
        }
        let nodes = Api::<Node>::all(self.client.clone());
        let node = nodes.get_opt(&announcement.instance).await;
        let Some(node) = node.context("could not read the Node")? else {
            return self
                .complete(announcement, "the instance has no Node")
                .await;
        };
        let control_plane = instance.tags.contains_key(CONTROL_PLANE_TAG);
        if announcement.cause == Cause::ScheduledEvent
            && !maintenance::may_begin(&self.client, &node, control_plane).await?
        {
            let why = "not drained yet: enough Nodes are out of service for scheduled events";
            write_refusal(refusals, announcement, why);
            return Ok(Progress::Pending);
        }
        self.mark_node(announcement, &node).await?;
        if reaction == Reaction::Cordon {
            return Ok(Progress::Done);
        }
        self.drain_node(announcement, &node, control_plane).await
    }

    /// An instance of this cluster.
    async fn find_instance(&self, id: &str) -> anyhow::Result<Option<Instance>> {
        if !is_instance(id) {
            return Ok(None);
        }
        let ids = [id];
        let found = self
            .ec2
            .describe_instances(&[("instance-id", &ids)])
            .await?;
        let ours = |one: &Instance| one.tags.get(CLUSTER_TAG) == Some(&self.config.cluster);
        Ok(found.into_iter().find(|one| one.id == id && ours(one)))
    }

    /// Asks AWS whether it is so.
    async fn confirm(
        &self,
        announcement: &Announcement,
        instance: &Instance,
    ) -> anyhow::Result<Confirmation> {
        let member = match announcement.cause {
            Cause::LifecycleHook { .. } => self.ec2.describe_scaling_member(&instance.id).await?,
            _ => None,
        };
        let scaling = member.as_ref();
        let seen = SeenByAws {
            state: &instance.state,
            spot: instance.spot,
            scaling: scaling.map(|member| (&*member.group, &*member.lifecycle_state)),
        };
        Ok(announcement.confirm(seen, (self.clock)()))
    }

    /// Cordons a Node and notes why, unless an earlier announcement has done so.
    async fn mark_node(&self, announcement: &Announcement, node: &Node) -> anyhow::Result<()> {
        let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        if cordoned && node.annotations().contains_key(TERMINATION_ANNOTATION) {
            return Ok(());
        }
        let since = announcement.time.format(&Rfc3339).unwrap_or_default();
        let note = format!("{}, {since}", announcement.cause);
        let change = |node: &Node| {
            let excluded_by = self
                .settings
                .exclude_from_load_balancers
                .then_some(EXCLUDED_BY);
            let mut patch = cordon_patch(node, excluded_by);
            merge_patches(
                &mut patch,
                json!({"metadata": {"annotations": {TERMINATION_ANNOTATION: note}}}),
            );
            if self.settings.taint {
                merge_patches(&mut patch, taint_patch(node, announcement));
            }
            patch
        };
        let name = &announcement.instance;
        let changed = kube_drain::change_node(self.client.clone(), name, change).await;
        changed.context("could not cordon the Node")?;
        let detail = format!("{}: cordoned", announcement.cause);
        self.write_log(Status::Started, announcement, &detail);
        Ok(())
    }

    /// One round of a drain.
    async fn drain_node(
        &self,
        announcement: &Announcement,
        node: &Node,
        control_plane: bool,
    ) -> anyhow::Result<Progress> {
        let pods = Api::<Pod>::all(self.client.clone());
        let on_node = ListParams::default().fields(&format!("spec.nodeName={}", node.name_any()));
        let pods = pods.list(&on_node).await.context("could not list pods")?;
        let since = drained_since(node, Some(announcement.time.unix_timestamp()));
        let with = |drain: Drain| {
            let all = pods.items.iter();
            all.filter(move |pod| drain_of(pod, since) == drain)
        };
        let to_evict: Vec<String> = with(Drain::Evict).map(pod_name).collect();
        let grace = self.settings.pod_grace_seconds;
        let refused = kube_drain::evict_pods(&self.client, &to_evict, grace).await;
        let refused = refused.context("could not evict pods")?;
        // The kubelet of a Node that is not ready ends no pods.
        let leaving = to_evict.len() - refused.len() + with(Drain::Leaving).count();
        let has_hook = matches!(announcement.cause, Cause::LifecycleHook { .. });
        let wait_for_end = has_hook && is_ready(node) && leaving > 0;
        let drained = refused.is_empty() && !wait_for_end;
        let needed =
            has_hook && control_plane && !self.others_carry_on(&announcement.instance).await?;
        if drained && !needed {
            return self.complete(announcement, "drained").await;
        }
        // A control plane that the others need is never let go. Auto Scaling goes on by itself once the time of the hook is over, which
        // begins anew as long as the message is there.
        if needed {
            self.extend_hook(announcement).await?;
            return Ok(Progress::Pending);
        }
        if (self.clock)() < announcement.deadline() {
            return Ok(Progress::Pending);
        }
        let why = describe_pods(&refused, leaving);
        self.complete(announcement, &format!("its time is over, and {why}"))
            .await
    }

    /// True if etcd has a quorum without a control plane, and no other is ending.
    async fn others_carry_on(&self, instance: &str) -> anyhow::Result<bool> {
        let etcd = self.config.control_plane.iter();
        let etcd = etcd.flat_map(|control_plane| &control_plane.etcd);
        let members = etcd.map(|etcd| etcd.members.len()).max();
        let nodes = Api::<Node>::all(self.client.clone());
        let labelled = ListParams::default().labels(CONTROL_PLANE_LABEL);
        let nodes = nodes.list(&labelled).await;
        let nodes = nodes.context("could not list the Nodes of control planes")?;
        let others = nodes
            .items
            .iter()
            .filter(|node| node.name_any() != instance);
        let ready: Vec<String> = others
            .filter(|node| is_ready(node))
            .map(ResourceExt::name_any)
            .collect();
        if !others_have_quorum(members.unwrap_or_default(), ready.len())
            || voters::find_risk(self.store, self.config, instance)
                .await?
                .is_some()
        {
            return Ok(false);
        }
        take_turn(&self.client, instance, &ready).await
    }

    async fn extend_hook(&self, announcement: &Announcement) -> anyhow::Result<()> {
        let instance = &announcement.instance;
        if let Cause::LifecycleHook {
            scaling_group,
            hook,
        } = &announcement.cause
        {
            let done = self
                .ec2
                .record_lifecycle_heartbeat(scaling_group, hook, instance);
            done.await.context("could not extend the lifecycle hook")?;
        }
        Ok(())
    }

    /// The end of an announcement: Auto Scaling waits no longer.
    async fn complete(&self, announcement: &Announcement, why: &str) -> anyhow::Result<Progress> {
        let cause = &announcement.cause;
        if let Cause::LifecycleHook {
            scaling_group,
            hook,
        } = cause
        {
            let done =
                self.ec2
                    .complete_lifecycle_action(scaling_group, hook, &announcement.instance);
            done.await
                .context("could not complete the lifecycle hook")?;
        }
        self.write_log(Status::Finished, announcement, &format!("{cause}: {why}"));
        Ok(Progress::Done)
    }

    fn write_log(&self, status: Status, announcement: &Announcement, detail: &str) {
        let instance = Some(announcement.instance.as_str());
        self.log.write_stage(STAGE, status, instance, detail);
    }
}

/// Takes the Lease by which control planes end one after the other. It is free if its holder is not among the others that are ready:
/// that one has ended, and counts as missing from then on.
async fn take_turn(client: &Client, instance: &str, others: &[String]) -> anyhow::Result<bool> {
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
    let context = "could not take the Lease kctl-termination";
    let found = leases.get_opt(LEASE).await.context(context)?;
    let holder = found.as_ref().and_then(|lease| lease.spec.as_ref());
    let holder = holder.and_then(|spec| spec.holder_identity.clone());
    if holder.as_deref() == Some(instance) {
        return Ok(true);
    }
    if holder.is_some_and(|holder| others.contains(&holder)) {
        return Ok(false);
    }
    let mut lease = found.unwrap_or_default();
    let exists = lease.metadata.resource_version.is_some();
    lease.metadata.name = Some(LEASE.to_owned());
    lease.spec.get_or_insert_default().holder_identity = Some(instance.to_owned());
    let parameters = PostParams::default();
    let taken = if exists {
        leases.replace(LEASE, &parameters, &lease).await
    } else {
        leases.create(&parameters, &lease).await
    };
    match taken {
        // Another protokube was faster.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        taken => taken.map(|_| true).context(context),
    }
}

/// Writes why a message is not followed, at most once in a while for each instance and cause.
fn write_refusal(refusals: &RefusalLog, announcement: &Announcement, why: &str) {
    let instance = untrusted_excerpt(&announcement.instance);
    let detail = format!("{}: {}", announcement.cause, untrusted_excerpt(why));
    let cause = format!("{instance} {}", announcement.cause);
    refusals.log_or_count(cause, Status::Failed, Some(&instance), &detail);
}

/// Adds the taint of a cause.
fn taint_patch(node: &Node, announcement: &Announcement) -> Value {
    let key = announcement.cause.taint_key();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
    let mut taints = taints.unwrap_or_default();
    taints.retain(|taint| taint.key != key);
    taints.push(Taint {
        effect: "NoSchedule".to_owned(),
        key: key.to_owned(),
        value: Some(announcement.event.clone()).filter(|event| !event.is_empty()),
        ..Taint::default()
    });
    json!({"spec": {"taints": taints}})
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The pods that are still there.
fn describe_pods(refused: &BTreeMap<String, String>, leaving: usize) -> String {
    if refused.is_empty() {
        return format!("{leaving} pods have not ended");
    }
    let named = refused.iter().take(NAMED_PODS);
    let named: Vec<String> = named.map(|(pod, why)| format!("{pod} ({why})")).collect();
    untrusted_excerpt(&format!(
        "{} pods could not be evicted: {}",
        refused.len(),
        named.join(", ")
    ))
}
