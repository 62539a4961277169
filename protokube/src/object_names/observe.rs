//! Lists the objects that want names, and waits until one of them wants something else.

use super::claims::{Claim, ObjectKind, ObjectRef, Target, node_addresses};
use super::wanted::NodeAddresses;
use crate::watch_events::{WATCH_SECONDS, wait_for_change_or_end};
use anyhow::Context;
use futures::FutureExt;
use futures::future::{BoxFuture, select_all};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::{NamespaceResourceScope, Resource};
use kube::api::{ListParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Pods without the host's network get no names, and there may be many.
const HOST_NETWORK: &str = "spec.hostNetwork=true";

/// The API, and which objects count.
#[derive(Clone)]
pub struct NamedObjects {
    pub client: Client,
    pub watch_ingress: bool,
    /// `None`: all namespaces. Nodes have none.
    pub namespace: Option<String>,
}

/// What the objects wanted when they were listed.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenObjects {
    claims: BTreeMap<ObjectRef, Vec<Claim>>,
    /// Empty unless a claim leads to Nodes.
    pub(super) nodes: NodeAddresses,
    /// Versions of the lists, from which they are watched.
    versions: BTreeMap<&'static str, String>,
}

impl SeenObjects {
    /// All claims, in the order of their objects.
    pub(super) fn claims(&self) -> Vec<Claim> {
        self.claims.values().flatten().cloned().collect()
    }

    fn of_object<K: ResourceExt>(&self, kind: ObjectKind, object: &K) -> &[Claim] {
        let reference = ObjectRef {
            kind,
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        };
        let claims = self.claims.get(&reference);
        claims.map(Vec::as_slice).unwrap_or_default()
    }

    fn need_nodes(&self) -> bool {
        let mut claims = self.claims.values().flatten();
        claims.any(|claim| matches!(claim.target, Target::Workers(_) | Target::Node(..)))
    }
}

impl NamedObjects {
    /// What the objects want now. Nodes are listed only if a name leads to them.
    pub(super) async fn list(&self) -> anyhow::Result<SeenObjects> {
        let mut seen = SeenObjects::default();
        self.list_claims(&mut seen, "", Claim::of_service).await?;
        self.list_claims(&mut seen, HOST_NETWORK, Claim::of_pod)
            .await?;
        if self.watch_ingress {
            self.list_claims(&mut seen, "", Claim::of_ingress).await?;
        }
        if seen.need_nodes() {
            let nodes = Api::<Node>::all(self.client.clone());
            let listed = nodes.list(&ListParams::default()).await;
            let listed = listed.context("could not list Nodes")?;
            seen.note_version(Node::KIND, listed.metadata.resource_version);
            let nodes = listed.items.iter();
            seen.nodes = nodes
                .map(|node| (node.name_any(), node_addresses(node)))
                .collect();
        }
        Ok(seen)
    }

    async fn list_claims<K>(
        &self,
        seen: &mut SeenObjects,
        fields: &str,
        claims: fn(&K) -> Vec<Claim>,
    ) -> anyhow::Result<()>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Resource
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let listed = self
            .api::<K>()
            .list(&ListParams::default().fields(fields))
            .await;
        let listed = listed.with_context(|| format!("could not list objects of {}", K::KIND))?;
        seen.note_version(K::KIND, listed.metadata.resource_version);
        for claim in listed.items.iter().flat_map(claims) {
            seen.claims
                .entry(claim.object.clone())
                .or_default()
                .push(claim);
        }
        Ok(())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// Waits until an object wants something else, or the watches end after a minute.
    pub(super) async fn wait_for_change(&self, seen: &SeenObjects) -> anyhow::Result<()> {
        let mut watches = vec![
            self.watch_claims(seen, ObjectKind::Service, "", Claim::of_service),
            self.watch_claims(seen, ObjectKind::Pod, HOST_NETWORK, Claim::of_pod),
        ];
        if self.watch_ingress {
            watches.push(self.watch_claims(seen, ObjectKind::Ingress, "", Claim::of_ingress));
        }
        if seen.need_nodes() {
            watches.push(self.watch_nodes(seen));
        }
        select_all(watches).await.0
    }

    fn watch_claims<'a, K>(
        &self,
        seen: &'a SeenObjects,
        kind: ObjectKind,
        fields: &'static str,
        claims: fn(&K) -> Vec<Claim>,
    ) -> BoxFuture<'a, anyhow::Result<()>>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Resource
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let api = self.api::<K>();
        let differs = move |object: &K| claims(object) != seen.of_object(kind, object);
        let had = move |object: &K| !seen.of_object(kind, object).is_empty();
        watch_objects(api, seen, fields, differs, had)
    }

    fn watch_nodes<'a>(&self, seen: &'a SeenObjects) -> BoxFuture<'a, anyhow::Result<()>> {
        let api = Api::<Node>::all(self.client.clone());
        let differs =
            move |node: &Node| seen.nodes.get(&node.name_any()) != Some(&node_addresses(node));
        watch_objects(api, seen, "", differs, |_| true)
    }
}

impl SeenObjects {
    fn note_version(&mut self, kind: &'static str, version: Option<String>) {
        self.versions.insert(kind, version.unwrap_or_default());
    }
}

fn watch_objects<'a, K>(
    api: Api<K>,
    seen: &SeenObjects,
    fields: &'static str,
    differs: impl Fn(&K) -> bool + Send + 'a,
    end_matters: impl Fn(&K) -> bool + Send + 'a,
) -> BoxFuture<'a, anyhow::Result<()>>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let version = seen.versions.get(K::KIND).cloned().unwrap_or_default();
    async move {
        let context = || format!("could not watch objects of {}", K::KIND);
        let watch = WatchParams::default().timeout(WATCH_SECONDS).fields(fields);
        let watch = api.watch(&watch, &version).await.with_context(context)?;
        let changed = wait_for_change_or_end(watch, differs, end_matters).await;
        changed.with_context(context)
    }
    .boxed()
}
