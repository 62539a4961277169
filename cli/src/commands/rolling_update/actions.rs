//! Carries out the actions of a rolling update: on Nodes and pods through the API, on instances through AWS. Each can be
//! repeated.

use super::traffic::target_groups;
use super::watch::View;
use aws_cloud::CloudClients;
use aws_cloud::fleet::{
    complete_hook, deregister_target, detach_instance, register_target, terminate_instance,
    terminate_warm_instance,
};
use drain::{EXCLUDE_LABEL, cordon_patch, label_of, merge_patches};
use engine::{Class, Failure, error_chain};
use fleet::InstanceStatus;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::{Api, DeleteParams};
use node::names::{ROLLING_UPDATE_ANNOTATION, lifecycle_hook};
use rolling_update::{Action, EXCLUDED_BY, Mark, TAINT};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// Trying again may help.
    #[error("{0}")]
    Passing(String),
    /// Trying again does not help.
    #[error("{0}")]
    Final(String),
}

/// What actions are carried out with.
pub struct Actions<'a> {
    pub clients: &'a CloudClients,
    /// `None` if only AWS is asked.
    pub api: Option<&'a kube::Client>,
    pub view: &'a View,
}

impl Actions<'_> {
    /// Carries out an action. `blocked` gets the reason of every eviction that the API refuses for now, by pod.
    pub async fn perform(
        &self,
        action: &Action,
        blocked: &mut BTreeMap<String, String>,
    ) -> Result<(), ActionError> {
        match action {
            Action::Taint { node } => self.change_node(node, add_taint).await,
            Action::Cordon { instance, mark } => {
                let node = self.node_name(instance)?;
                let change = |node: &Node| {
                    let mut patch = cordon_patch(node, Some(EXCLUDED_BY));
                    merge_patches(&mut patch, mark_patch(mark));
                    patch
                };
                self.change_node(&node, change).await
            }
            Action::NoteDrained { instance, mark } => {
                let node = self.node_name(instance)?;
                let change = |_: &Node| mark_patch(mark);
                self.change_node(&node, change).await
            }
            Action::Release { node, uncordon } => {
                // The mark goes last: whoever finds it knows that the traffic may not be restored yet.
                self.restore_traffic_of_node(node).await?;
                self.change_node(node, |node| release_patch(node, *uncordon))
                    .await
            }
            Action::Evict { pods, .. } => self.evict(pods, blocked).await,
            Action::DeletePods { pods, .. } => self.delete_pods(pods).await,
            Action::WithdrawTraffic { instance } => {
                for target_group in target_groups(&self.view.fleet, self.status(instance)?) {
                    let done = deregister_target(self.clients, target_group, instance).await;
                    aws_result(done)?;
                }
                Ok(())
            }
            Action::RestoreTraffic { instance } => {
                self.restore_traffic(self.status(instance)?).await
            }
            Action::Detach { instance } => {
                let status = self.status(instance)?;
                let Some(group) = &status.instance.scaling_group else {
                    return Ok(());
                };
                aws_result(detach_instance(self.clients, group, instance).await)
            }
            Action::Terminate { instance } if self.status(instance)?.instance.is_in_warm_pool() => {
                aws_result(terminate_warm_instance(self.clients, instance).await)
            }
            Action::Terminate { instance } => {
                let is_member = self.status(instance)?.instance.scaling_group.is_some();
                aws_result(terminate_instance(self.clients, instance, is_member).await)
            }
            Action::CompleteHook { instance } => {
                let status = self.status(instance)?;
                let Some(group) = &status.instance.scaling_group else {
                    return Ok(());
                };
                let hook = lifecycle_hook(status.group());
                aws_result(complete_hook(self.clients, group, &hook, instance).await)
            }
        }
    }

    fn status(&self, instance: &str) -> Result<&InstanceStatus, ActionError> {
        let mut all = self.view.fleet.instances.iter();
        all.find(|one| one.instance.id == instance)
            .ok_or_else(|| ActionError::Passing(format!("{instance} is not listed any more")))
    }

    fn node_name(&self, instance: &str) -> Result<String, ActionError> {
        let node = self.status(instance)?.node.as_ref();
        node.map(|node| node.name.clone())
            .ok_or_else(|| ActionError::Passing(format!("{instance} has no Node any more")))
    }

    fn api(&self) -> Result<kube::Client, ActionError> {
        let missing = || ActionError::Final("there is no connection to the API".to_owned());
        self.api.cloned().ok_or_else(missing)
    }

    async fn change_node(
        &self,
        name: &str,
        change: impl Fn(&Node) -> Value,
    ) -> Result<(), ActionError> {
        let changed = kube_drain::change_node(self.api()?, name, change).await;
        changed.map_err(api_error)
    }

    /// Registers the instance of a Node in its target groups again.
    async fn restore_traffic_of_node(&self, node: &str) -> Result<(), ActionError> {
        let mut all = self.view.fleet.instances.iter();
        let status = all.find(|one| one.node.as_ref().is_some_and(|own| own.name == node));
        match status {
            Some(status) => self.restore_traffic(status).await,
            None => Ok(()),
        }
    }

    async fn restore_traffic(&self, status: &InstanceStatus) -> Result<(), ActionError> {
        for target_group in target_groups(&self.view.fleet, status) {
            let done = register_target(self.clients, target_group, &status.instance.id).await;
            aws_result(done)?;
        }
        Ok(())
    }

    /// Asks the API to evict pods. What a budget refuses is asked again later.
    async fn evict(
        &self,
        pods: &[String],
        blocked: &mut BTreeMap<String, String>,
    ) -> Result<(), ActionError> {
        let refusals = kube_drain::evict_pods(&self.api()?, pods, None).await;
        blocked.extend(refusals.map_err(api_error)?);
        Ok(())
    }

    async fn delete_pods(&self, pods: &[String]) -> Result<(), ActionError> {
        let client = self.api()?;
        for pod in pods {
            let (namespace, name) = split_name(pod);
            let api = Api::<Pod>::namespaced(client.clone(), namespace);
            match api.delete(name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                done => {
                    done.map_err(api_error)?;
                }
            }
        }
        Ok(())
    }
}

/// Namespace and name.
fn split_name(pod: &str) -> (&str, &str) {
    pod.split_once('/').unwrap_or(("", pod))
}

fn add_taint(node: &Node) -> Value {
    let mut taints = other_taints(node);
    taints.push(Taint {
        effect: "PreferNoSchedule".to_owned(),
        key: TAINT.to_owned(),
        ..Taint::default()
    });
    json!({"spec": {"taints": taints}})
}

/// The taints of a Node but the one of rolling updates.
fn other_taints(node: &Node) -> Vec<Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
    let mut taints = taints.unwrap_or_default();
    taints.retain(|taint| taint.key != TAINT);
    taints
}

fn mark_patch(mark: &Mark) -> Value {
    // A mark has only texts and numbers.
    let text = serde_json::to_string(mark).unwrap_or_default();
    json!({"metadata": {"annotations": {ROLLING_UPDATE_ANNOTATION: text}}})
}

fn release_patch(node: &Node, uncordon: bool) -> Value {
    let mut patch = json!({
        "metadata": {"annotations": {ROLLING_UPDATE_ANNOTATION: null}},
        "spec": {"taints": other_taints(node)},
    });
    if label_of(node, EXCLUDE_LABEL).is_some_and(|value| value == EXCLUDED_BY) {
        merge_patches(
            &mut patch,
            json!({"metadata": {"labels": {EXCLUDE_LABEL: null}}}),
        );
    }
    if uncordon {
        merge_patches(&mut patch, json!({"spec": {"unschedulable": null}}));
    }
    patch
}

/// A conflict, an API that does not answer and an overloaded one pass; a refusal does not.
fn api_error(error: kube::Error) -> ActionError {
    let text = error_chain(&error);
    match error {
        kube::Error::Api(status) if [400, 401, 403, 422].contains(&status.code) => {
            ActionError::Final(text)
        }
        _ => ActionError::Passing(text),
    }
}

/// What is gone needs no change. Auto Scaling answers `ValidationError` also for an instance that it has ended meanwhile ("No
/// managed instance found") and for a hook that is complete ("No active Lifecycle Action found"): the next observation shows it.
fn aws_result(done: Result<(), Failure>) -> Result<(), ActionError> {
    match done {
        Ok(()) => Ok(()),
        Err(failure) => match failure.class {
            Class::Gone => Ok(()),
            Class::Invalid if failure.code == "ValidationError" => {
                Err(ActionError::Passing(failure.to_string()))
            }
            Class::Denied | Class::Quota | Class::Invalid => {
                Err(ActionError::Final(failure.to_string()))
            }
            Class::Throttled | Class::NotYet | Class::Exists | Class::Blocked | Class::Unknown => {
                Err(ActionError::Passing(failure.to_string()))
            }
        },
    }
}
