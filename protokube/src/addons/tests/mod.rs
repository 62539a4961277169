//! The follower against an API server on loopback and a store in a folder.

mod server;
#[path = "../../../tests/support/store.rs"]
mod store;

use super::round::Follower;
use super::{Pace, follow};
use crate::log::{Log, Voice};
use aws::store::{Expect, Store};
use hyper::Method;
use model::node::sha256;
use model::report::{StageLine, Status};
use serde_json::{Value, json};
use server::Server;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::store_in;
use tempfile::TempDir;

struct Scene {
    server: Server,
    store: Store,
    lines: Arc<Mutex<Vec<StageLine>>>,
    _folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            server: Server::start().await,
            store: store_in(folder.path()).await,
            lines: Arc::default(),
            _folder: folder,
        }
    }

    /// A protokube.
    fn follower(&self) -> Follower {
        let lines = self.lines.clone();
        let log = Log::to(move |line| {
            let line = serde_json::from_str(line).unwrap();
            lines.lock().unwrap().push(line);
        });
        let voice = Voice::to(log, "addons");
        Follower::new(self.server.client(), self.store.clone(), voice)
    }

    async fn put(&self, key: &str, text: String) {
        self.store
            .put(key, text.into_bytes(), Expect::Any)
            .await
            .unwrap();
    }

    /// One look, after which all is well.
    async fn looks(&self, follower: &mut Follower) {
        let well = follower.look().await;
        assert!(well, "{:?}", self.said());
    }

    /// Stores addons, each with objects.
    async fn want(&self, addons: &[(&str, &[Value])]) {
        let mut list =
            String::from("kind: Addons\nmetadata: {name: bootstrap}\nspec:\n  addons:\n");
        for (name, objects) in addons {
            let manifest = manifest(name, objects);
            list += &format!(
                "  - {{name: {name}, id: v1, manifest: {name}/v1.yaml, manifestHash: {}, selector: {{k8s-addon: {name}}}}}\n",
                sha256(&manifest)
            );
            self.put(&format!("addons/{name}/v1.yaml"), manifest).await;
        }
        if addons.is_empty() {
            list = list.replace("addons:\n", "addons: []\n");
        }
        self.put("addons/bootstrap-channel.yaml", list).await;
    }

    /// What was said since the last time: status and detail.
    fn said(&self) -> Vec<(Status, String)> {
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

    fn changes(&self) -> Vec<String> {
        let said = self.said().into_iter();
        said.map(|(status, detail)| {
            assert_eq!(status, Status::Finished, "{detail}");
            detail
        })
        .collect()
    }

    fn record(&self, addon: &str) -> Value {
        let record = self.server.object("kctl-addons").unwrap();
        let text = record["data"][addon].as_str().unwrap_or("null");
        serde_json::from_str(text).unwrap()
    }
}

fn manifest(addon: &str, objects: &[Value]) -> String {
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

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}})
}

fn of(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "own"}})
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

const APPLY: &str = "PATCH /api/v1/namespaces/kube-system/configmaps/";

fn applied(requests: &[String]) -> Vec<&str> {
    requests
        .iter()
        .filter_map(|one| one.strip_prefix(APPLY))
        .collect()
}

#[tokio::test]
async fn addons_are_applied_in_the_lists_order_and_each_in_its_manifests() {
    let scene = Scene::new().await;
    let second = [
        namespace("own"),
        of("v1", "ServiceAccount", "c"),
        of("apps/v1", "DaemonSet", "d"),
    ];
    scene
        .want(&[("first", &[map("b"), map("a")]), ("second", &second)])
        .await;
    scene.looks(&mut scene.follower()).await;
    let requests = scene.server.take_requests();
    let patches: Vec<&str> = requests
        .iter()
        .filter_map(|one| one.strip_prefix("PATCH "))
        .collect();
    assert_eq!(
        patches,
        [
            "/api/v1/namespaces/kube-system/configmaps/b",
            "/api/v1/namespaces/kube-system/configmaps/a",
            "/api/v1/namespaces/own",
            "/api/v1/namespaces/own/serviceaccounts/c",
            "/apis/apps/v1/namespaces/own/daemonsets/d",
        ]
    );
    assert_eq!(
        scene.changes(),
        ["first: 2 objects applied", "second: 3 objects applied"]
    );
}

#[tokio::test]
async fn an_unchanged_list_costs_one_read_of_the_store_and_one_of_the_api() {
    let scene = Scene::new().await;
    scene
        .want(&[("first", &[map("a")]), ("second", &[map("b")])])
        .await;
    let mut follower = scene.follower();
    scene.looks(&mut follower).await;
    scene.server.take_requests();
    scene.said();
    let reads = scene.store.reads();
    // Another control plane, or this one after its restart, is no different.
    for follower in [&mut follower, &mut scene.follower()] {
        let before = scene.store.reads();
        scene.looks(follower).await;
        assert_eq!(scene.store.reads() - before, 1);
        assert_eq!(
            scene.server.take_requests(),
            ["GET /api/v1/namespaces/kube-system/configmaps/kctl-addons"]
        );
    }
    assert_eq!(scene.store.reads() - reads, 2);
    assert_eq!(scene.said(), []);
}

#[tokio::test]
async fn only_what_changed_is_applied_again() {
    let scene = Scene::new().await;
    scene
        .want(&[("first", &[map("a")]), ("second", &[map("b")])])
        .await;
    let mut follower = scene.follower();
    scene.looks(&mut follower).await;
    scene.server.take_requests();
    let mut changed = map("b");
    changed["data"] = json!({"key": "value"});
    scene
        .want(&[("first", &[map("a")]), ("second", &[changed])])
        .await;
    scene.looks(&mut follower).await;
    assert_eq!(applied(&scene.server.take_requests()), ["b"]);
    assert_eq!(scene.server.object("b").unwrap()["data"]["key"], "value");
}

#[tokio::test]
async fn a_kind_that_comes_later_is_found_by_asking_again() {
    let scene = Scene::new().await;
    let object = of("example.com/v1", "Thing", "t");
    scene.want(&[("first", &[object, map("a")])]).await;
    let mut follower = scene.follower();
    assert!(!follower.look().await);
    assert_eq!(
        scene.server.names(),
        ["a"],
        "the others are not kept waiting"
    );
    let [(Status::Failed, why)] = &scene.said()[..] else {
        panic!()
    };
    assert_eq!(
        why,
        "first: could not apply Thing own/t: the API server has no Thing of example.com/v1"
    );
    assert!(!follower.look().await);
    assert_eq!(scene.said(), [], "the same error is said once");

    let kinds = vec![("Thing", "things", true)];
    scene
        .server
        .world
        .lock()
        .unwrap()
        .kinds
        .insert("example.com/v1".into(), kinds);
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["a", "t"]);
    assert_eq!(scene.changes(), ["first: 2 objects applied"]);
}

#[tokio::test]
async fn a_kind_that_moved_is_found_in_the_same_look() {
    let scene = Scene::new().await;
    let mut follower = scene.follower();
    scene
        .want(&[("first", &[of("apps/v1", "DaemonSet", "d")])])
        .await;
    scene.looks(&mut follower).await;
    // What was asked for is remembered, and wrong: the same kind has another path now.
    let kinds = vec![("DaemonSet", "daemons", true)];
    scene
        .server
        .world
        .lock()
        .unwrap()
        .kinds
        .insert("apps/v1".into(), kinds);
    scene
        .want(&[("first", &[of("apps/v1", "DaemonSet", "e")])])
        .await;
    follower.look().await;
    let requests = scene.server.take_requests();
    assert!(
        requests.contains(&"PATCH /apis/apps/v1/namespaces/own/daemons/e".to_owned()),
        "{requests:?}"
    );
}

#[tokio::test]
async fn an_error_of_the_server_is_said_once_and_tried_again() {
    let scene = Scene::new().await;
    scene
        .want(&[("first", &[map("a"), map("b")]), ("second", &[map("c")])])
        .await;
    scene.server.fail(Method::PATCH, "/a", 500, 2);
    let mut follower = scene.follower();
    assert!(!follower.look().await);
    assert_eq!(
        scene.said(),
        [
            (
                Status::Failed,
                "first: could not apply ConfigMap kube-system/a: told to fail (status 500)"
                    .to_owned()
            ),
            (Status::Finished, "second: 1 object applied".to_owned()),
        ]
    );
    assert!(scene.record("first")["sha256"].is_null());
    assert!(!follower.look().await);
    assert_eq!(scene.said(), []);
    scene.server.take_requests();
    scene.looks(&mut follower).await;
    assert_eq!(
        applied(&scene.server.take_requests()),
        ["a", "b"],
        "the addon that is done is left alone"
    );
    assert_eq!(scene.changes(), ["first: 2 objects applied"]);
    // The same error would be news again.
    scene.server.fail(Method::PATCH, "/a", 500, 1);
    scene.want(&[("first", &[map("a")])]).await;
    assert!(!follower.look().await);
    assert!(
        scene
            .said()
            .iter()
            .any(|(status, _)| *status == Status::Failed)
    );
}

#[tokio::test]
async fn a_conflict_is_tried_again() {
    let scene = Scene::new().await;
    scene.want(&[("first", &[map("a")])]).await;
    scene.server.fail(Method::PATCH, "/a", 409, 1);
    let mut follower = scene.follower();
    assert!(!follower.look().await);
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["a"]);
}

#[tokio::test]
async fn what_left_an_addon_and_addons_that_left_the_list_are_removed_the_last_first() {
    let scene = Scene::new().await;
    let second = [namespace("own"), of("apps/v1", "DaemonSet", "d")];
    scene
        .want(&[("first", &[map("a"), map("b")]), ("second", &second)])
        .await;
    let mut follower = scene.follower();
    scene.looks(&mut follower).await;
    scene.said();
    scene.want(&[("first", &[map("b")])]).await;
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["b"]);
    assert_eq!(
        scene.changes(),
        [
            "first: 1 object applied",
            "first: ConfigMap kube-system/a removed",
            "second: DaemonSet own/d removed",
            "second: Namespace own removed",
        ]
    );
    assert!(scene.record("second").is_null());
    scene.want(&[]).await;
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), Vec::<String>::new());
}

#[tokio::test]
async fn only_ours_is_removed() {
    let scene = Scene::new().await;
    let names = ["kept", "theirs", "other", "plain"];
    scene.want(&[("first", &names.map(map))]).await;
    let mut follower = scene.follower();
    scene.looks(&mut follower).await;
    scene.said();
    scene.server.change("theirs", |object| {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("kops");
    });
    scene.server.change("other", |object| {
        object["metadata"]["labels"]["addon.kops.k8s.io/name"] = json!("second");
    });
    scene.server.change("plain", |object| {
        object["metadata"] = json!({"name": "plain", "namespace": "kube-system"});
    });
    // Never applied by us, though labelled as if: nobody recorded it.
    let stranger = json!({"metadata": {"name": "stranger", "labels": {"addon.kops.k8s.io/name": "first", "app.kubernetes.io/managed-by": "kctl"}}});
    let path = "/api/v1/namespaces/kube-system/configmaps/stranger";
    scene
        .server
        .world
        .lock()
        .unwrap()
        .objects
        .insert(path.into(), stranger);
    scene.want(&[]).await;
    scene.looks(&mut follower).await;
    assert_eq!(
        scene.server.names(),
        ["other", "plain", "stranger", "theirs"]
    );
    let said = scene.changes();
    assert_eq!(
        said.iter()
            .filter(|line| line.contains("left alone"))
            .count(),
        3,
        "{said:?}"
    );
    assert!(said.contains(&"first: ConfigMap kube-system/kept removed".to_owned()));
}

#[tokio::test]
async fn an_object_that_moves_to_another_addon_is_not_removed() {
    let scene = Scene::new().await;
    scene.want(&[("first", &[map("a"), map("b")])]).await;
    let mut follower = scene.follower();
    scene.looks(&mut follower).await;
    scene.server.take_requests();
    scene
        .want(&[("first", &[map("a")]), ("second", &[map("b")])])
        .await;
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["a", "b"]);
    assert!(
        !scene
            .server
            .take_requests()
            .iter()
            .any(|one| one.starts_with("DELETE"))
    );
}

#[tokio::test]
async fn what_could_not_be_removed_is_tried_again() {
    let scene = Scene::new().await;
    scene.want(&[("first", &[map("a"), map("b")])]).await;
    let mut follower = scene.follower();
    scene.looks(&mut follower).await;
    scene.want(&[]).await;
    scene.server.fail(Method::DELETE, "/a", 500, 1);
    assert!(!follower.look().await);
    assert_eq!(scene.server.names(), ["a"]);
    // Whoever goes on.
    scene.looks(&mut scene.follower()).await;
    assert_eq!(scene.server.names(), Vec::<String>::new());
}

#[tokio::test]
async fn nothing_is_forgotten_when_protokube_is_killed_between_applying_and_recording() {
    let scene = Scene::new().await;
    scene.want(&[("first", &[map("a"), map("b")])]).await;
    // The last write of the record does not happen.
    scene.server.fail(Method::PUT, "/kctl-addons", 500, 1);
    assert!(!scene.follower().look().await);
    assert_eq!(scene.server.names(), ["a", "b"]);
    scene.want(&[("first", &[map("b")])]).await;
    scene.looks(&mut scene.follower()).await;
    assert_eq!(scene.server.names(), ["b"]);
}

#[tokio::test]
async fn of_two_control_planes_with_different_lists_the_later_list_wins() {
    let scene = Scene::new().await;
    let (mut slow, mut quick) = (scene.follower(), scene.follower());
    let old = |value: &str| {
        let mut object = map("a");
        object["data"] = json!({"list": value});
        object
    };
    scene
        .want(&[("first", &[old("old"), map("only-old")])])
        .await;
    // While the slow one applies the old list, the record is overtaken.
    let overtaken = Arc::new(Mutex::new(false));
    let seen = overtaken.clone();
    scene.server.world.lock().unwrap().meanwhile = Some(Box::new(move |objects, request| {
        if request.ends_with("/only-old") && request.starts_with("PATCH") && !*seen.lock().unwrap()
        {
            *seen.lock().unwrap() = true;
            let record = objects
                .iter_mut()
                .find(|(path, _)| path.ends_with("/kctl-addons"))
                .unwrap()
                .1;
            record["metadata"]["resourceVersion"] = json!("overtaken");
            record["data"] = json!({});
        }
    }));
    assert!(!slow.look().await);
    assert!(*overtaken.lock().unwrap());
    scene.server.world.lock().unwrap().meanwhile = None;
    scene.want(&[("first", &[old("new")])]).await;
    scene.looks(&mut quick).await;
    assert_eq!(
        scene.server.names(),
        ["a", "only-old"],
        "the quick one cannot know of it"
    );
    scene.looks(&mut slow).await;
    assert_eq!(scene.server.names(), ["a"]);
    assert_eq!(scene.server.object("a").unwrap()["data"]["list"], "new");
}

#[tokio::test]
async fn a_manifest_that_is_not_the_listed_one_is_not_applied() {
    let scene = Scene::new().await;
    scene
        .want(&[("first", &[map("a")]), ("second", &[map("b")])])
        .await;
    scene
        .put("addons/first/v1.yaml", manifest("first", &[map("evil")]))
        .await;
    let mut follower = scene.follower();
    assert!(!follower.look().await);
    assert_eq!(scene.server.names(), ["b"]);
    let said = scene.said();
    assert!(
        said[0].1.starts_with(
            "first: addons/first/v1.yaml is not the one that addons/bootstrap-channel.yaml names"
        ),
        "{said:?}"
    );
    scene
        .want(&[("first", &[map("a")]), ("second", &[map("b")])])
        .await;
    scene.looks(&mut follower).await;
    assert_eq!(scene.server.names(), ["a", "b"]);
}

#[tokio::test]
async fn a_store_without_a_list_says_what_to_do_and_removes_nothing() {
    let scene = Scene::new().await;
    scene.want(&[("first", &[map("a")])]).await;
    let mut follower = scene.follower();
    scene.looks(&mut follower).await;
    scene.said();
    scene
        .store
        .delete("addons/bootstrap-channel.yaml", Expect::Any)
        .await
        .unwrap();
    assert!(!follower.look().await);
    assert_eq!(scene.server.names(), ["a"]);
    let [(Status::Failed, why)] = &scene.said()[..] else {
        panic!()
    };
    assert!(why.contains("run `kctl update cluster --yes`"), "{why}");
}

#[tokio::test]
async fn a_broken_entry_of_the_record_is_said_and_made_anew() {
    let scene = Scene::new().await;
    scene.want(&[("first", &[map("a")])]).await;
    let mut follower = scene.follower();
    scene.looks(&mut follower).await;
    scene.server.change("kctl-addons", |record| {
        record["data"]["first"] = json!("broken");
    });
    scene.looks(&mut follower).await;
    assert!(!scene.record("first")["sha256"].is_null());
    assert!(
        scene
            .said()
            .iter()
            .any(|(status, detail)| *status == Status::Failed && detail.contains("kctl-addons"))
    );
}

#[tokio::test]
async fn it_goes_on_for_ever_whatever_fails() {
    let scene = Scene::new().await;
    let pace = Pace {
        usual: Duration::from_millis(5),
        retry: Duration::from_millis(1),
        longest: Duration::from_mins(1),
    };
    let running = tokio::spawn(follow(scene.follower(), pace));
    let eventually = async |wanted: &dyn Fn() -> bool| {
        let wait = async {
            while !wanted() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // Rather an error than a test without an end.
        tokio::time::timeout(Duration::from_mins(2), wait)
            .await
            .unwrap();
    };
    // First there is nothing in the store, then the server fails, then all is well, then the list changes.
    eventually(&|| !scene.lines.lock().unwrap().is_empty()).await;
    scene.server.fail(Method::GET, "/kctl-addons", 500, 3);
    scene.want(&[("first", &[map("a")])]).await;
    eventually(&|| scene.server.names() == ["a"]).await;
    scene.want(&[("first", &[map("b")])]).await;
    eventually(&|| scene.server.names() == ["b"]).await;
    assert!(!running.is_finished());
    running.abort();
}
