//! What counts as a change of a cluster between two listings.

use super::*;
use aws_client::Clients;
use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, SystemTime};

const NAME: &str = "demo.example.com";

const CLUSTER: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: demo.example.com}\nspec: {cloudProvider: aws}\n";

async fn put(store: &Store, path: &str, text: &str) {
    let (key, bytes) = (format!("{NAME}/{path}"), text.as_bytes().to_vec());
    store.put(&key, bytes, Expect::Any).await.unwrap();
}

async fn open_store(dir: &tempfile::TempDir) -> Store {
    let url = format!("file://{}", dir.path().display());
    Store::open(&url, &Clients::load(None, None).await).unwrap()
}

async fn read(store: &Store) -> ClusterState {
    let options = ReadOptions::default();
    ClusterState::read(store, NAME, options).await.unwrap()
}

fn group_text(name: &str, most: u32) -> String {
    format!(
        "apiVersion: kops.k8s.io/v1alpha2\nkind: InstanceGroup\nmetadata: {{name: {name}}}\nspec: {{role: Node, maxSize: {most}}}\n"
    )
}

#[tokio::test]
async fn groups_are_read_together_but_for_those_that_changed_since() {
    const GROUPS: u32 = 30;
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(&dir).await;
    put(&store, "config", CLUSTER).await;
    let mut texts = BTreeMap::new();
    for number in 0..GROUPS {
        let name = format!("g{number:02}");
        let text = group_text(&name, 1);
        put(&store, &format!("instancegroup/{name}"), &text).await;
        texts.insert(name, text);
    }
    // Reads besides the listing and the cluster, and whether the groups were written together afterwards.
    let check = async |texts: &BTreeMap<String, String>, reads: u64, writes: u64| {
        let before = (store.reads(), store.writes());
        let mut state = read(&store).await;
        assert_eq!(store.reads() - before.0, 2 + reads);
        let groups = state.groups.iter();
        let found: BTreeMap<String, String> = groups
            .map(|group| (group.object.name().to_owned(), group.text.clone()))
            .collect();
        assert_eq!(found, *texts);
        for group in &state.groups {
            let entry = state.find_entry(&state.keys.group(group.object.name()));
            assert_eq!(entry.unwrap().version, group.version);
        }
        let other = read(&store).await;
        state.write_group_texts(&store).await.unwrap();
        assert_eq!(store.writes() - before.1, writes);
        assert!(
            other.is_current(&store).await.unwrap(),
            "what follows from others is no change"
        );
    };
    check(&texts, u64::from(GROUPS), 1).await;
    check(&texts, 1, 0).await;

    let changed = group_text("g07", 2);
    put(&store, "instancegroup/g07", &changed).await;
    texts.insert("g07".to_owned(), changed);
    let added = group_text("new", 1);
    put(&store, "instancegroup/new", &added).await;
    texts.insert("new".to_owned(), added);
    check(&texts, 3, 1).await;

    let key = format!("{NAME}/instancegroup/g03");
    store.delete(&key, Expect::Any).await.unwrap();
    texts.remove("g03");
    check(&texts, 1, 1).await;
    check(&texts, 1, 0).await;

    for broken in ["", "{}", "[]", r#"{"format": 2, "groups": {}}"#] {
        put(&store, "instancegroups.json", broken).await;
        check(&texts, 1 + u64::from(GROUPS), 1).await;
        check(&texts, 1, 0).await;
    }
}

#[tokio::test]
async fn only_another_content_of_what_a_plan_is_made_from_is_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(&dir).await;
    put(&store, "config", CLUSTER).await;
    put(&store, "pki/public.json", "one").await;
    put(&store, "nodes/i-1.json", "one").await;
    let state = read(&store).await;
    let is_current = async || state.is_current(&store).await.unwrap();
    assert!(is_current().await);

    // An object has another age at each listing, and another date if the same is written again.
    for ago in [3, 3600] {
        let file = File::options()
            .write(true)
            .open(dir.path().join(NAME).join("config"));
        let then = SystemTime::now() - Duration::from_secs(ago);
        file.unwrap().set_modified(then).unwrap();
        assert!(is_current().await, "written {ago} s ago");
    }
    for path in [
        "lock",
        "rolling-update.lock",
        "rolling-update.json",
        "operations/1.json",
        "nodes/i-1.json",
        "nodes/i-2.protokube.json",
        "instancegroups.json",
        "object-digests.json",
    ] {
        put(&store, path, "two").await;
        assert!(is_current().await, "{path}");
    }
    for (path, before) in [("pki/public.json", Some("one")), ("instancegroup/a", None)] {
        // As long as before.
        put(&store, path, "two").await;
        assert!(!is_current().await, "{path}");
        match before {
            Some(before) => put(&store, path, before).await,
            None => {
                let key = format!("{NAME}/{path}");
                store.delete(&key, Expect::Any).await.unwrap();
            }
        }
        assert!(is_current().await, "{path} is as before");
    }
}
