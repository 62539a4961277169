//! A store with addons, an API server, and protokubes that follow.

use super::server::Server;
use super::store::store_in;
use crate::addons::round::Follower;
use crate::log::{Log, RoleLog};
use aws_client::store::{Expect, Store};
use node::config::sha256_hex;
use node::report::{StageLine, Status};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

pub(super) struct Scene {
    pub(super) server: Server,
    pub(super) store: Store,
    pub(super) lines: Arc<Mutex<Vec<StageLine>>>,
    _folder: TempDir,
}

impl Scene {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            server: Server::start().await,
            store: store_in(folder.path()).await,
            lines: Arc::default(),
            _folder: folder,
        }
    }

    /// A scene in which these addons are applied, and who applied them. Nothing was said or asked since.
    pub(super) async fn applied(addons: &[(&str, &[Value])]) -> (Self, Follower) {
        let scene = Self::new().await;
        scene.want(addons).await;
        let mut follower = scene.follower();
        scene.looks(&mut follower).await;
        scene.said();
        scene.server.take_requests();
        (scene, follower)
    }

    /// A protokube.
    pub(super) fn follower(&self) -> Follower {
        let lines = self.lines.clone();
        let log = Log::from_fn(move |line| {
            let line = serde_json::from_str(line).unwrap();
            lines.lock().unwrap().push(line);
        });
        let voice = RoleLog::with_log(log, "addons");
        Follower::new(self.server.client(), self.store.clone(), voice)
    }

    pub(super) async fn put(&self, key: &str, text: String) {
        self.store
            .put(key, text.into_bytes(), Expect::Any)
            .await
            .unwrap();
    }

    /// One look, after which all is well.
    pub(super) async fn looks(&self, follower: &mut Follower) {
        let well = follower.run_round().await;
        assert!(well, "{:?}", self.said());
    }

    /// Stores addons, each with objects.
    pub(super) async fn want(&self, addons: &[(&str, &[Value])]) {
        let mut list =
            String::from("kind: Addons\nmetadata: {name: bootstrap}\nspec:\n  addons:\n");
        for (name, objects) in addons {
            let manifest = manifest(name, objects);
            list += &format!(
                "  - {{name: {name}, id: v1, manifest: {name}/v1.yaml, manifestHash: {}, selector: {{k8s-addon: {name}}}}}\n",
                sha256_hex(&manifest)
            );
            self.put(&format!("addons/{name}/v1.yaml"), manifest).await;
        }
        if addons.is_empty() {
            list = list.replace("addons:\n", "addons: []\n");
        }
        self.put("addons/bootstrap-channel.yaml", list).await;
    }

    /// What was said since the last time: status and detail.
    pub(super) fn said(&self) -> Vec<(Status, String)> {
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

    pub(super) fn changes(&self) -> Vec<String> {
        let said = self.said().into_iter();
        said.map(|(status, detail)| {
            assert_eq!(status, Status::Finished, "{detail}");
            detail
        })
        .collect()
    }

    pub(super) fn record(&self, addon: &str) -> Value {
        let record = self.server.object("kctl-addons").unwrap();
        let text = record["data"][addon].as_str().unwrap_or("null");
        serde_json::from_str(text).unwrap()
    }
}

pub(super) fn manifest(addon: &str, objects: &[Value]) -> String {
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

pub(super) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}})
}

pub(super) fn of(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "own"}})
}

pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub(super) const APPLY: &str = "PATCH /api/v1/namespaces/kube-system/configmaps/";

pub(super) fn applied(requests: &[String]) -> Vec<&str> {
    requests
        .iter()
        .filter_map(|one| one.strip_prefix(APPLY))
        .collect()
}
