//! A state store with addons, a fake API server, and reconcilers.

use super::server::FakeApiServer;
use super::signer::put_signed;
use super::store::store_in;
use crate::addons::round::AddonReconciler;
use crate::api::{ApiAccess, ApiClient};
use aws_client::store::{Expect, Store};
use node::digest::sha256_hex;
use node::report::{StageLine, Status};
use protokube_role::log::{Log, RoleLog};
use protokube_role::signed_objects::SignedObjects;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

pub(super) const CLUSTER: &str = "a.example.com";

pub(super) struct AddonFixture {
    pub(super) server: FakeApiServer,
    pub(super) store: Store,
    pub(super) lines: Arc<Mutex<Vec<StageLine>>>,
    _folder: TempDir,
}

impl AddonFixture {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            server: FakeApiServer::start().await,
            store: store_in(folder.path()).await,
            lines: Arc::default(),
            _folder: folder,
        }
    }

    /// A fixture in which these addons are applied, with the reconciler that applied them. Lines and requests are cleared.
    pub(super) async fn with_applied_addons(
        addons: &[(&str, &[Value])],
    ) -> (Self, AddonReconciler) {
        let fixture = Self::new().await;
        fixture.store_addons(addons).await;
        let mut reconciler = fixture.new_reconciler();
        fixture.run_healthy_round(&mut reconciler).await;
        fixture.take_log_lines();
        fixture.server.take_requests();
        (fixture, reconciler)
    }

    /// A new reconciler, as after a start of protokube.
    pub(super) fn new_reconciler(&self) -> AddonReconciler {
        self.reconciler_with(self.server.client().into())
    }

    /// A new reconciler whose own user has its rights or not, and the number of administrators' clients that it has asked for.
    pub(super) fn counting_reconciler(&self, granted: bool) -> (AddonReconciler, Arc<AtomicUsize>) {
        let client = self.server.client();
        let own = ApiClient {
            client: client.clone(),
            granted,
        };
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let access = ApiAccess::given(own, move || {
            count.fetch_add(1, Ordering::Relaxed);
            client.clone()
        });
        (self.reconciler_with(access), asked)
    }

    fn reconciler_with(&self, access: ApiAccess) -> AddonReconciler {
        let lines = self.lines.clone();
        let log = Log::from_fn(move |line| {
            let line = serde_json::from_str(line).unwrap();
            lines.lock().unwrap().push(line);
        });
        let role_log = RoleLog::with_log(log, "addons");
        let signed = SignedObjects::new(&self.store, CLUSTER);
        AddonReconciler::new(access, signed, role_log)
    }

    pub(super) async fn put_object(&self, key: &str, text: String) {
        self.store
            .put(key, text.into_bytes(), Expect::Any)
            .await
            .unwrap();
    }

    /// Runs one round, which must succeed.
    pub(super) async fn run_healthy_round(&self, reconciler: &mut AddonReconciler) {
        let well = reconciler.run_round().await;
        assert!(well, "{:?}", self.take_log_lines());
    }

    /// Stores a list of addons with their objects.
    pub(super) async fn store_addons(&self, addons: &[(&str, &[Value])]) {
        let mut list =
            String::from("kind: Addons\nmetadata: {name: bootstrap}\nspec:\n  addons:\n");
        for (name, objects) in addons {
            let manifest = manifest_text(name, objects);
            list += &format!(
                "  - {{name: {name}, id: v1, manifest: {name}/v1.yaml, manifestHash: {}, selector: {{k8s-addon: {name}}}}}\n",
                sha256_hex(&manifest)
            );
            self.put_object(&format!("addons/{name}/v1.yaml"), manifest)
                .await;
        }
        if addons.is_empty() {
            list = list.replace("addons:\n", "addons: []\n");
        }
        put_signed(&self.store, CLUSTER, "addons/bootstrap-channel.yaml", &list).await;
    }

    /// Status and detail of the lines since the last call.
    pub(super) fn take_log_lines(&self) -> Vec<(Status, String)> {
        let lines = std::mem::take(&mut *self.lines.lock().unwrap());
        assert!(
            lines
                .iter()
                .all(|line| line.source == "protokube" && line.stage == "addons")
        );
        lines
            .into_iter()
            .map(|line| (line.status, line.detail))
            .collect()
    }

    pub(super) fn take_changes(&self) -> Vec<String> {
        let lines = self.take_log_lines().into_iter();
        lines
            .map(|(status, detail)| {
                assert_eq!(status, Status::Finished, "{detail}");
                detail
            })
            .collect()
    }

    pub(super) fn addon_record(&self, addon: &str) -> Value {
        let record = self.server.find_object("kctl-addons").unwrap();
        let text = record["data"][addon].as_str().unwrap_or("null");
        serde_json::from_str(text).unwrap()
    }
}

pub(super) fn manifest_text(addon: &str, objects: &[Value]) -> String {
    let labelled = objects.iter().map(|object| {
        let mut object = object.clone();
        object["metadata"]["labels"] = json!({
            "addon.kops.k8s.io/name": addon,
            "app.kubernetes.io/managed-by": "kctl",
        });
        object.to_string()
    });
    labelled.collect::<Vec<_>>().join("\n---\n")
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}})
}

pub(super) fn object_of_kind(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "own"}})
}

pub(super) fn namespace_object(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub(super) const APPLY: &str = "PATCH /api/v1/namespaces/kube-system/configmaps/";

pub(super) fn applied_paths(requests: &[String]) -> Vec<&str> {
    requests
        .iter()
        .filter_map(|one| one.strip_prefix(APPLY))
        .collect()
}
