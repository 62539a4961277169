//! Pulling from the registry by hand, as a client does it.

use crate::support::TestFront;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

struct Repository<'a> {
    front: &'a TestFront,
    folder: &'a str,
}

impl Repository<'_> {
    fn blob(&self, content: &[u8]) -> Value {
        let hex = format!("{:x}", Sha256::digest(content));
        let path = format!("registry/{}/blobs/sha256/{hex}", self.folder);
        self.front.write(&path, content);
        json!({"digest": format!("sha256:{hex}"), "size": content.len()})
    }

    fn json(&self, kind: &str, content: &Value) -> Value {
        let mut descriptor = self.blob(content.to_string().as_bytes());
        descriptor["mediaType"] = json!(kind);
        descriptor
    }

    fn config(&self) -> Value {
        let config = json!({"os": "linux"});
        self.json("application/vnd.oci.image.config.v1+json", &config)
    }

    /// An image of one layer; its manifest's descriptor and its layer's digest.
    fn image(&self, layer: &[u8]) -> (Value, String) {
        let config = self.config();
        let layer = self.blob(layer);
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        (self.json(MANIFEST, &manifest), text(&layer["digest"]))
    }

    fn tagged(&self, tags: &[(&str, &Value)]) {
        let annotated = tags.iter().map(|(tag, descriptor)| {
            let mut descriptor = (*descriptor).clone();
            descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
            descriptor
        });
        let index = json!({"schemaVersion": 2, "manifests": annotated.collect::<Vec<_>>()});
        let path = format!("registry/{}/index.json", self.folder);
        self.front.write(&path, index.to_string().as_bytes());
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

async fn front() -> TestFront {
    TestFront::before("127.0.0.1:1".parse().expect("address")).await
}

#[tokio::test]
async fn an_image_is_pulled_by_tag_then_by_digest() {
    let front = front().await;
    let repository = Repository {
        front: &front,
        folder: "registry.k8s.io/pause",
    };
    let (manifest, layer) = repository.image(&vec![9; 70_000]);
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]});
    let index = repository.json(INDEX, &index);
    repository.tagged(&[("3.10", &index), ("old", &manifest)]);

    let base = "https://registry.k8s.io/v2/";
    let answer = front.get(&[base]).await.expect("an answer");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("docker-distribution-api-version"),
        Some("registry/2.0")
    );

    let by_tag = format!("{base}pause/manifests/3.10?ns=registry.k8s.io");
    let answer = front.get(&["--head", &by_tag]).await.expect("an answer");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some(INDEX));
    assert_eq!(
        answer.header("docker-content-digest"),
        index["digest"].as_str()
    );

    // The image of a platform is in no index.json; its type is what it says itself.
    let by_digest = format!("{base}pause/manifests/{}", text(&manifest["digest"]));
    let answer = front.get(&[&by_digest]).await.expect("an answer");
    assert_eq!(answer.header("content-type"), Some(MANIFEST));
    let pulled: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(pulled["layers"][0]["digest"], layer);

    let blob = format!("{base}pause/blobs/{layer}");
    let answer = front.get(&[&blob]).await.expect("an answer");
    assert!(answer.body == vec![9; 70_000]);
    let answer = front.get(&["-r", "10-19", &blob]).await.expect("an answer");
    assert_eq!((answer.status, answer.body.len()), (206, 10));
    assert_eq!(front.log()[0]["service"], "registry");
}

#[tokio::test]
async fn tags_are_listed_in_pages() {
    let front = front().await;
    let repository = Repository {
        front: &front,
        folder: "quay.io/coreos/flannel",
    };
    let (manifest, _) = repository.image(b"layer");
    repository.tagged(&[("c", &manifest), ("a", &manifest), ("b", &manifest)]);
    let url = "https://quay.io/v2/coreos/flannel/tags/list";
    let list = async |query: &str| {
        let answer = front
            .get(&[&format!("{url}{query}")])
            .await
            .expect("an answer");
        let list: Value = serde_json::from_slice(&answer.body).expect("JSON");
        (list, answer.header("link").map(str::to_owned))
    };
    let all = json!({"name": "coreos/flannel", "tags": ["a", "b", "c"]});
    assert_eq!(list("").await, (all, None));
    let (page, next) = list("?n=2").await;
    assert_eq!(page["tags"], json!(["a", "b"]));
    let next = next.expect("a next page");
    assert_eq!(
        next,
        "</v2/coreos/flannel/tags/list?n=2&last=b>; rel=\"next\""
    );
    let (page, next) = list("?n=2&last=b").await;
    assert_eq!((&page["tags"], next), (&json!(["c"]), None));
}

#[tokio::test]
async fn docker_hub_has_three_names() {
    let front = front().await;
    let repository = Repository {
        front: &front,
        folder: "docker.io/library/busybox",
    };
    let (manifest, _) = repository.image(b"layer");
    repository.tagged(&[("1", &manifest)]);
    for host in ["docker.io", "registry-1.docker.io", "index.docker.io"] {
        let url = format!("https://{host}/v2/library/busybox/manifests/1");
        assert_eq!(front.get(&[&url]).await.expect("an answer").status, 200);
    }
}

#[tokio::test]
async fn what_is_unknown_or_written_is_refused_in_the_specifications_words() {
    let front = front().await;
    let repository = Repository {
        front: &front,
        folder: "ghcr.io/some/image",
    };
    let (manifest, layer) = repository.image(b"layer");
    repository.tagged(&[("1", &manifest)]);
    let none = format!("sha256:{}", "0".repeat(64));
    let config = text(&repository.config()["digest"]);
    for (path, status, code) in [
        ("some/image/manifests/2", 404, "MANIFEST_UNKNOWN"),
        (
            &format!("some/image/manifests/{none}"),
            404,
            "MANIFEST_UNKNOWN",
        ),
        (
            &format!("some/image/manifests/{config}"),
            404,
            "MANIFEST_UNKNOWN",
        ),
        (
            &format!("some/image/manifests/{layer}"),
            404,
            "MANIFEST_UNKNOWN",
        ),
        (&format!("some/image/blobs/{none}"), 404, "BLOB_UNKNOWN"),
        ("some/image/blobs/sha256:..", 400, "DIGEST_INVALID"),
        ("some/manifests/1", 404, "NAME_UNKNOWN"),
        ("../ghcr.io/some/image/manifests/1", 404, "NAME_UNKNOWN"),
        ("some/tags/list", 404, "NAME_UNKNOWN"),
    ] {
        let url = format!("https://ghcr.io/v2/{path}");
        let answer = front.get(&["--path-as-is", &url]).await.expect("an answer");
        let error: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(error["errors"][0]["code"], code, "{path}");
    }
    let push = ["-X", "POST", "https://ghcr.io/v2/some/image/blobs/uploads/"];
    assert_eq!(front.get(&push).await.expect("an answer").status, 405);
}
