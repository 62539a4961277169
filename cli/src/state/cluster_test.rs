//! What counts as a change of a cluster between two listings.

use super::*;
use aws_client::Clients;
use std::fs::File;
use std::time::{Duration, SystemTime};

const NAME: &str = "demo.example.com";

const CLUSTER: &str = "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: demo.example.com}\nspec: {cloudProvider: aws}\n";

async fn put(store: &Store, path: &str, text: &str) {
    let (key, bytes) = (format!("{NAME}/{path}"), text.as_bytes().to_vec());
    store.put(&key, bytes, Expect::Any).await.unwrap();
}

#[tokio::test]
async fn only_another_content_of_what_a_plan_is_made_from_is_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}", dir.path().display());
    let store = Store::open(&url, &Clients::load(None, None).await).unwrap();
    put(&store, "config", CLUSTER).await;
    put(&store, "pki/public.json", "one").await;
    put(&store, "nodes/i-1.json", "one").await;
    let options = ReadOptions::default();
    let state = ClusterState::read(&store, NAME, options).await.unwrap();
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
