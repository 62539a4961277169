//! Certificates are issued if they are not as desired, and otherwise left alone.

use crate::test_host::{TestHost, minted_keysets, test_date};
use node::bootstrap;
use node::config::Role;
use node::host::{CertificateStorage, HostObject, HostResource};
use node::pki::{KeyAlgorithm, SystemKeys, issue_certificate, mint_keyset, trust_bundle};
use nodeup::host::Signer;
use std::sync::Arc;
use time::Duration;

const KUBELET: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
const API: &str = "/srv/kubernetes/kube-apiserver/server.crt";

fn only_certificates(all: Vec<HostResource>) -> Vec<HostResource> {
    let certificates = all
        .into_iter()
        .filter(|resource| matches!(resource.thing, HostObject::Certificate(_)));
    certificates
        .map(|resource| HostResource::new(resource.thing))
        .collect()
}

fn issue_certificates() -> (TestHost, Vec<HostResource>) {
    let host = TestHost::new();
    let wanted = only_certificates(host.desired_state(Role::ControlPlane, |_| ()));
    let applied = host.apply(&wanted);
    assert!(applied.is_complete(), "{applied:?}");
    (host, wanted)
}

#[test]
fn a_certificate_is_renewed_when_a_third_of_its_life_is_left_and_kubelets_is_kubelets() {
    let (mut host, wanted) = issue_certificates();
    let days = |host: &mut TestHost, days| {
        host.now = test_date() + Duration::days(days);
        host.planned_changes(&wanted)
    };
    assert!(days(&mut host, 290).is_empty());
    let due = days(&mut host, 310);
    assert_eq!(due.len(), wanted.len() - 1, "{due:?}");
    assert!(!due.contains(&format!("certificate/{KUBELET}")));
    assert!(host.plan_text(&wanted).contains("expiring"));
    assert_eq!(days(&mut host, 456).len(), wanted.len());
    let text = host.plan_text(&wanted);
    assert!(text.contains("ended") && !text.contains("expiring"));
    assert!(host.apply(&wanted).is_complete());
    assert!(host.planned_changes(&wanted).is_empty());
}

#[test]
fn by_force_each_certificate_gets_another_key_once_in_a_run_and_kubelets_is_kubelets() {
    let (mut host, wanted) = issue_certificates();
    let keys = |host: &TestHost| -> Vec<String> {
        let pairs = wanted.iter().filter_map(|resource| match &resource.thing {
            HostObject::Certificate(certificate) => match &certificate.storage {
                CertificateStorage::Pair { key, .. } => Some(host.read_text(key)),
                CertificateStorage::Rotating { .. } => None,
            },
            _ => None,
        });
        pairs.collect()
    };
    let kubelets = host.read_text(KUBELET);
    // Another run issues them again.
    for _ in 0..2 {
        let before = keys(&host);
        host.forced = Some(Arc::default());
        let due = host.planned_changes(&wanted);
        assert_eq!(due.len(), wanted.len() - 1, "{due:?}");
        assert!(!due.contains(&format!("certificate/{KUBELET}")));
        assert!(host.plan_text(&wanted).contains("forced"));
        let applied = host.apply(&wanted);
        assert!(applied.is_complete(), "{applied:?}");
        assert_eq!(applied.changes.len(), due.len());
        let after = keys(&host);
        assert!(!after.iter().any(|key| before.contains(key)));
        // To observe afterwards finds nothing to do, in the same run and in the next one.
        assert!(host.planned_changes(&wanted).is_empty());
        assert!(host.apply(&wanted).changes.is_empty());
        assert_eq!(keys(&host), after);
        host.forced = None;
        assert!(host.planned_changes(&wanted).is_empty());
    }
    assert_eq!(host.read_text(KUBELET), kubelets);
}

#[test]
fn a_pair_that_does_not_fit_is_issued_anew() {
    let (host, wanted) = issue_certificates();
    let other = host.read_text("/srv/kubernetes/kube-apiserver/kubelet-api.key");
    let key = host.host_path("/srv/kubernetes/kube-apiserver/server.key");
    std::fs::remove_file(&key).unwrap();
    std::fs::write(&key, other).unwrap();
    assert_eq!(
        host.planned_changes(&wanted),
        [format!("certificate/{API}")]
    );
    assert!(host.plan_text(&wanted).contains("other_key"));
    assert!(host.apply(&wanted).is_complete());
    assert!(host.planned_changes(&wanted).is_empty());
}

#[test]
fn what_another_authority_signed_is_not_believed() {
    let (host, wanted) = issue_certificates();
    let mut keys = SystemKeys::issuing_at(test_date());
    let impostor = mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
    let HostObject::Certificate(api) = &wanted
        .iter()
        .find(|resource| resource.thing.path() == Some(API))
        .unwrap()
        .thing
    else {
        panic!()
    };
    let forged = issue_certificate(&impostor, &api.leaf_to_issue(), &mut keys).unwrap();
    for (path, text) in [
        (API, forged.certificate.as_str()),
        (
            "/srv/kubernetes/kube-apiserver/server.key",
            forged.key.reveal(),
        ),
    ] {
        std::fs::remove_file(host.host_path(path)).unwrap();
        std::fs::write(host.host_path(path), text).unwrap();
    }
    assert!(host.plan_text(&wanted).contains("other_authority"));
    assert!(host.apply(&wanted).is_complete());
    assert!(host.planned_changes(&wanted).is_empty());
}

#[test]
fn other_names_make_another_certificate() {
    let (host, _) = issue_certificates();
    let wanted = host.desired_state(Role::ControlPlane, |config| {
        let control_plane = config.control_plane.as_mut().unwrap();
        control_plane.api_names.push("api.example.org".into());
    });
    assert_eq!(
        host.planned_changes(&only_certificates(wanted)),
        [format!("certificate/{API}")]
    );
}

#[test]
fn kubelets_own_file_is_a_link_and_whatever_kubelet_put_there_stays() {
    let (host, wanted) = issue_certificates();
    assert!(host.host_path(KUBELET).is_symlink());
    // kubelet renews its certificate by writing another file and replacing the link.
    let renewed = host.host_path("/var/lib/kubelet/pki/kubelet-client-2026-01-01-00-00-00.pem");
    std::fs::copy(host.host_path(KUBELET), &renewed).unwrap();
    std::fs::remove_file(host.host_path(KUBELET)).unwrap();
    std::os::unix::fs::symlink(&renewed, host.host_path(KUBELET)).unwrap();
    assert!(host.planned_changes(&wanted).is_empty());
    // A copied plain file, which kubelet would not renew.
    let content = host.read_text(KUBELET);
    std::fs::remove_file(host.host_path(KUBELET)).unwrap();
    std::fs::write(host.host_path(KUBELET), &content).unwrap();
    assert!(host.plan_text(&wanted).contains("not_a_link"));
    assert!(host.apply(&wanted).is_complete());
    assert!(host.host_path(KUBELET).is_symlink());
    assert_eq!(host.read_text(KUBELET), content);
}

#[test]
fn a_worker_gets_what_joining_gave_and_need_not_join_again() {
    let mut host = TestHost::new();
    let wanted = only_certificates(host.desired_state(Role::Node, |_| ()));
    let mut keys = SystemKeys::issuing_at(test_date());
    host.signer = Arc::default();
    assert_eq!(host.planned_changes(&wanted).len(), 2);
    let applied = host.apply(&wanted);
    assert_eq!(
        applied.failed.len(),
        2,
        "without joining there is nobody to sign: {applied:?}"
    );

    let authority = &minted_keysets()["kubernetes-ca"];
    let joined = wanted.iter().map(|resource| {
        let HostObject::Certificate(certificate) = &resource.thing else {
            panic!()
        };
        let which = match certificate.common_name.as_str() {
            "system:kube-proxy" => bootstrap::CertificateKind::KubeProxy,
            _ => bootstrap::CertificateKind::Kubelet,
        };
        (
            which,
            issue_certificate(authority, &certificate.leaf_to_issue(), &mut keys).unwrap(),
        )
    });
    host.signer = Arc::new(Signer {
        joined: joined.collect(),
        ..Signer::default()
    });
    assert!(host.apply(&wanted).is_complete());
    host.signer = Arc::default();
    assert!(host.planned_changes(&wanted).is_empty());
    // The authority is no longer trusted.
    host.trust_bundle = trust_bundle(&minted_keysets()["etcd-clients-ca"]);
    assert_eq!(host.planned_changes(&wanted).len(), 2);
}

#[test]
fn keys_are_roots_alone() {
    use std::os::unix::fs::PermissionsExt;
    let host = TestHost::new();
    let applied = host.apply(&host.desired_state(Role::ControlPlane, |_| ()));
    assert!(applied.is_complete(), "{applied:?}");
    for (path, what) in host.file_tree() {
        let file = host.host_path(&path);
        if file.is_file() && !file.is_symlink() && host.read_text(&path).contains("PRIVATE KEY") {
            let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o077;
            assert_eq!(mode, 0, "{path} {what}");
        }
    }
}

/// The AWS IAM authenticator's pod is not root. Whoever runs the tests may give files away only as root.
#[test]
fn a_pair_with_an_owner_is_that_users() {
    use std::os::unix::fs::MetadataExt;
    let host = TestHost::new();
    let all = host.desired_state(Role::ControlPlane, |config| {
        config.control_plane.as_mut().unwrap().aws_iam_authenticator = true;
    });
    let mut wanted = only_certificates(all);
    let folder = "/srv/kubernetes/aws-iam-authenticator";
    wanted.retain(|one| matches!(&one.thing, HostObject::Certificate(pair) if pair.path().starts_with(folder)));
    assert_eq!(wanted.len(), 1);
    let root = std::fs::metadata(host.host_path("/etc/passwd"))
        .unwrap()
        .uid()
        == 0;
    let applied = host.apply(&wanted);
    assert_eq!(applied.is_complete(), root, "{applied:?}");
    for (file, mode) in [("cert.pem", 0o644), ("key.pem", 0o400)] {
        let about = std::fs::metadata(host.host_path(&format!("{folder}/{file}")));
        let about = about.map(|about| (about.uid(), about.gid(), about.mode() & 0o777));
        assert_eq!(about.ok(), root.then_some((10_000, 10_000, mode)), "{file}");
    }
}
