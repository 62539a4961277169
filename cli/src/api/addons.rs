//! Reads the objects of addons, and what they would be after their manifests were applied again, which changes nothing.

use fleet::{AddonObject, ChartJob};
use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, ApiResource, Scope, pinned_kind};
use kube::{Client, Error};
use node::addons::{HELM_GROUP, MANAGER, api_group};
use serde_json::Value;
use std::collections::BTreeMap;

/// Label of the jobs of a chart and of their pods.
const HELM_GROUP_LABEL: &str = "helmcharts.helm.cattle.io/chart";

/// Requests under way at once.
const AT_ONCE: usize = 8;

/// API version and kind.
type Kind = (String, String);

/// The kinds that the API has, of those that were looked up.
type Kinds = BTreeMap<Kind, (ApiResource, ApiCapabilities)>;

/// Reads the objects of manifests, in their order.
pub async fn read_addon_objects(
    client: &Client,
    manifests: &[Vec<Value>],
) -> Result<Vec<Vec<AddonObject>>, Error> {
    let kinds = find_kinds(client, manifests.iter().flatten()).await?;
    let objects = manifests.iter().enumerate();
    let objects = objects.flat_map(|(addon, objects)| objects.iter().map(move |one| (addon, one)));
    let read = objects.map(|(addon, object)| {
        let read = read_object(client, &kinds, object);
        async move { (addon, read.await) }
    });
    let mut read = stream::iter(read).buffered(AT_ONCE);
    let mut all = vec![Vec::new(); manifests.len()];
    while let Some((addon, object)) = read.next().await {
        if let Some(all) = all.get_mut(addon) {
            all.push(object?);
        }
    }
    Ok(all)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

fn kind_of(object: &Value) -> Kind {
    let of = |pointer| text(object, pointer).to_owned();
    (of("/apiVersion"), of("/kind"))
}

async fn find_kinds(
    client: &Client,
    objects: impl Iterator<Item = &Value>,
) -> Result<Kinds, Error> {
    let wanted: std::collections::BTreeSet<Kind> = objects.map(kind_of).collect();
    let found = wanted.into_iter().map(|(version, kind)| async move {
        let (group, number) = version.rsplit_once('/').unwrap_or(("", &version));
        let named = GroupVersionKind::gvk(group, number, &kind);
        match pinned_kind(client, &named).await {
            Ok(found) => Ok(Some(((version, kind), found))),
            // The API has no such group, or no such kind.
            Err(Error::Discovery(_)) => Ok(None),
            Err(Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    });
    let mut found = stream::iter(found).buffered(AT_ONCE);
    let mut kinds = Kinds::new();
    while let Some(one) = found.next().await {
        kinds.extend(one?);
    }
    Ok(kinds)
}

/// The job in which helm installs a chart, and its pods.
async fn read_chart_job(client: &Client, namespace: &str, name: &str) -> Result<ChartJob, Error> {
    let namespace = if namespace.is_empty() {
        "default"
    } else {
        namespace
    };
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let of_chart = ListParams::default().labels(&format!("{HELM_GROUP_LABEL}={name}"));
    let job = jobs.get_opt(&format!("helm-install-{name}")).await?;
    let pods = pods.list(&of_chart).await?;
    Ok(ChartJob {
        job: job.and_then(|job| serde_json::to_value(job).ok()),
        pods: pods
            .items
            .iter()
            .filter_map(|pod| serde_json::to_value(pod).ok())
            .collect(),
    })
}

/// Reads an object. It is an error only if the API cannot be asked.
async fn read_object(client: &Client, kinds: &Kinds, object: &Value) -> Result<AddonObject, Error> {
    let (name, namespace) = (
        text(object, "/metadata/name"),
        text(object, "/metadata/namespace"),
    );
    let (version, kind) = kind_of(object);
    let id = match namespace {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    };
    let mut read = AddonObject {
        id,
        live: None,
        applied: None,
        error: None,
        chart: None,
    };
    let Some((resource, capabilities)) = kinds.get(&(version.clone(), kind.clone())) else {
        read.error = Some(format!("the API has no {kind} of {version}"));
        return Ok(read);
    };
    let api: Api<DynamicObject> = match (&capabilities.scope, namespace) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), resource),
        (Scope::Namespaced, "") => Api::namespaced_with(client.clone(), "default", resource),
        (Scope::Namespaced, namespace) => Api::namespaced_with(client.clone(), namespace, resource),
    };
    let live = api.get_opt(name).await?;
    read.live = live.and_then(|live| serde_json::to_value(live).ok());
    if read.live.is_none() {
        return Ok(read);
    }
    if kind == "HelmChart" && api_group(&version) == HELM_GROUP {
        read.chart = Some(read_chart_job(client, namespace, name).await?);
    }
    let how = PatchParams::apply(MANAGER).force().dry_run();
    match api.patch(name, &how, &Patch::Apply(object)).await {
        Ok(applied) => read.applied = serde_json::to_value(applied).ok(),
        Err(Error::Api(status)) => {
            read.error = Some(format!(
                "the API server refuses the manifest: {}",
                status.message
            ));
        }
        Err(error) => return Err(error),
    }
    Ok(read)
}
