//! Archives whose members would write outside of the target folder.

use crate::test_host::{TestHost, sha256_hex};
use flate2::Compression;
use flate2::write::GzEncoder;
use node::host::{Download, HostObject, HostResource, InstallTarget};
use proptest::prelude::*;
use tar::{EntryType, Header};

/// A member with any name and target, also those that the tar library refuses to write.
fn make_member(name: &str, kind: EntryType, target: &str) -> (Header, Vec<u8>) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o755);
    let content = if kind == EntryType::Regular {
        name.as_bytes().to_vec()
    } else {
        Vec::new()
    };
    header.set_size(content.len() as u64);
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    (header, content)
}

fn pack_members(members: &[(Header, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (header, content) in members {
        tar.append(header, content.as_slice()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn install_archive(
    host: &TestHost,
    bytes: &[u8],
    place: InstallTarget,
) -> nodeup::host::ApplyResult {
    let sha256 = sha256_hex(bytes);
    std::fs::write(host.cache_folder().join(&sha256), bytes).unwrap();
    let download = Download {
        name: "plugins".into(),
        sha256,
        place,
    };
    host.apply(&[HostResource::new(HostObject::Download(download))])
}

fn any_bad_member() -> impl Strategy<Value = (Header, Vec<u8>)> {
    let outside = prop::sample::select(vec![
        "../evil",
        "a/../../evil",
        "/evil",
        "/etc/passwd",
        "a/../b",
        "./../evil",
        "..",
    ]);
    let targets = prop::sample::select(vec!["../evil", "/etc/passwd", "x/../../evil", "/", ".."]);
    let kinds = prop::sample::select(vec![EntryType::Symlink, EntryType::Link]);
    prop_oneof![
        outside.prop_map(|name| make_member(name, EntryType::Regular, "")),
        (kinds, targets).prop_map(|(kind, target)| make_member("link", kind, target)),
        Just(make_member("device", EntryType::Block, "")),
        Just(make_member("pipe", EntryType::Fifo, "")),
    ]
}

fn any_target() -> impl Strategy<Value = InstallTarget> {
    prop_oneof![
        Just(InstallTarget::Programs("/opt/cni/bin".into())),
        Just(InstallTarget::Members(
            [("bridge".to_owned(), "/usr/bin/bridge".to_owned())].into()
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_archive_that_reaches_out_of_itself_leaves_nothing_behind(bad in any_bad_member(), place in any_target(), first: bool) {
        let host = TestHost::new();
        std::fs::create_dir_all(host.host_path("/opt/cni/bin")).unwrap();
        std::fs::create_dir_all(host.host_path("/usr/bin")).unwrap();
        let before = host.file_tree();
        let good = make_member("bridge", EntryType::Regular, "");
        let members = if first { [bad, good] } else { [good, bad] };
        let applied = install_archive(&host, &pack_members(&members), place);
        prop_assert_eq!(applied.failed.len(), 1);
        prop_assert_eq!(host.file_tree(), before);
    }

    #[test]
    fn an_archive_that_was_cut_leaves_nothing_behind(part in 0.0..0.99_f64, place in any_target()) {
        let host = TestHost::new();
        std::fs::create_dir_all(host.host_path("/opt/cni/bin")).unwrap();
        std::fs::create_dir_all(host.host_path("/usr/bin")).unwrap();
        let before = host.file_tree();
        let whole = pack_members(&[make_member("bridge", EntryType::Regular, ""), make_member("portmap", EntryType::Regular, "")]);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in between")]
        let cut = (part * whole.len() as f64) as usize;
        let applied = install_archive(&host, &whole[..cut], place);
        prop_assert_eq!(applied.failed.len(), 1);
        prop_assert_eq!(host.file_tree(), before);
    }
}

#[test]
fn links_within_an_archive_are_no_reason_to_refuse_it() {
    let host = TestHost::new();
    let members = [
        make_member("bridge", EntryType::Regular, ""),
        make_member("docs/latest", EntryType::Symlink, "../bridge"),
        make_member("same", EntryType::Link, "bridge"),
    ];
    let applied = install_archive(
        &host,
        &pack_members(&members),
        InstallTarget::Programs("/opt/cni/bin".into()),
    );
    assert!(applied.is_complete(), "{applied:?}");
    assert_eq!(host.read_text("/opt/cni/bin/bridge"), "bridge");
    assert!(!host.host_path("/opt/cni/bin/same").exists());
}

#[test]
fn an_archive_without_what_is_wanted_is_refused_by_name() {
    let host = TestHost::new();
    let bytes = pack_members(&[make_member("bin/ctr", EntryType::Regular, "")]);
    let place = InstallTarget::Members(
        [(
            "bin/containerd".to_owned(),
            "/usr/bin/containerd".to_owned(),
        )]
        .into(),
    );
    let error = install_archive(&host, &bytes, place).error_text().unwrap();
    assert!(error.contains("lacks bin/containerd"), "{error}");
}

#[test]
fn a_download_with_another_hash_is_not_installed() {
    let host = TestHost::new();
    let sha256 = sha256_hex(b"kubelet");
    std::fs::write(host.cache_folder().join(&sha256), b"something else").unwrap();
    let before = host.file_tree();
    let download = Download {
        name: "kubelet".into(),
        sha256,
        place: InstallTarget::Program("/kubelet".into()),
    };
    let applied = host.apply(&[HostResource::new(HostObject::Download(download))]);
    assert!(
        applied.error_text().unwrap().contains("has sha256"),
        "{applied:?}"
    );
    assert_eq!(host.file_tree(), before);
}
