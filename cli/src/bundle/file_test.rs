//! Laws of bundle files: the same contents give the same bytes, and no bit can change without being found.

use super::*;
use node::config::Arch;
use spec::bundle::{BUNDLE_FORMAT, BundledFile, BundledImage};
use std::fs;

/// A bundle whose files end before, at and behind the end of a block.
fn sample() -> (Bundle, BTreeMap<String, Content>) {
    let mut bundle = Bundle {
        format: BUNDLE_FORMAT,
        cluster: "demo.example.com".to_owned(),
        kubernetes_version: "1.34.1".to_owned(),
        files: Vec::new(),
        images: Vec::new(),
    };
    let mut contents = BTreeMap::new();
    for (name, size) in [("containerd", 0), ("kubelet", 512), ("runc", 513)] {
        let bytes = name.bytes().cycle().take(size).collect::<Vec<_>>();
        let file = BundledFile {
            name: name.to_owned(),
            arch: Arch::Arm64,
            sha256: sha256_hex(&bytes),
            size: size as u64,
            url: format!("https://example.com/{name}"),
        };
        contents.insert(file.key(), Content(vec![Piece::Bytes(bytes)]));
        bundle.files.push(file);
    }
    let archive = b"an archive".to_vec();
    let image = BundledImage {
        image: "registry.k8s.io/pause:3.10.1".to_owned(),
        arch: Arch::Amd64,
        digest: format!("sha256:{}", sha256_hex("an index")),
        sha256: sha256_hex(&archive),
        size: archive.len() as u64,
    };
    contents.insert(image.key(), Content(vec![Piece::Bytes(archive)]));
    bundle.images.push(image);
    (bundle, contents)
}

/// Writes the sample into a folder, and returns its bytes.
fn write_sample(folder: &Path, name: &str) -> Vec<u8> {
    let (bundle, contents) = sample();
    let path = folder.join(name);
    write_bundle(&path, &bundle, contents).unwrap();
    fs::read(path).unwrap()
}

fn check(path: &Path) -> anyhow::Result<()> {
    BundleFile::open(path)?.check()
}

/// What `kctl bundle verify` says of these bytes.
fn complaint(folder: &Path, bytes: &[u8]) -> String {
    let path = folder.join("damaged");
    fs::write(&path, bytes).unwrap();
    let error = check(&path).unwrap_err();
    format!("{error:#}")
}

#[test]
fn a_bundle_gives_back_what_was_put_in_and_is_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(write_sample(folder, "one"), write_sample(folder, "two"));
    let file = BundleFile::open(&folder.join("one")).unwrap();
    file.check().unwrap();
    let (bundle, contents) = sample();
    assert_eq!(file.bundle, bundle);
    assert_eq!(file.sha256(), sha256_hex(bundle.to_text().unwrap()));
    for (path, content) in contents {
        let (to, mut expected) = (folder.join("extracted"), Vec::new());
        let sha256 = file.extract(&path, &to).unwrap();
        content.write_to(&mut expected).unwrap();
        assert_eq!(fs::read(&to).unwrap(), expected, "{path}");
        assert_eq!(sha256, sha256_hex(&expected), "{path}");
    }
    assert!(file.extract("etc/passwd", &folder.join("none")).is_err());
}

#[test]
fn a_full_disk_is_no_damage_of_the_bundle() {
    let folder = tempfile::tempdir().unwrap();
    write_sample(folder.path(), "one");
    let file = BundleFile::open(&folder.path().join("one")).unwrap();
    let sizes: Vec<(&str, u64)> = file.sizes().collect();
    let (path, _) = sizes.iter().find(|(_, size)| *size > 0).unwrap();
    // Whoever writes to this device learns that it has no space.
    for to in ["/dev/full", "/dev/null/none"] {
        let error = file.extract(path, Path::new(to)).unwrap_err();
        assert!(error.is::<NotWritten>(), "{to}: {error:#}");
    }
}

#[test]
fn a_changed_bit_is_found_and_the_file_with_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let whole = write_sample(folder, "whole");
    let mut begins = BTreeMap::new();
    let mut archive = tar::Archive::new(whole.as_slice());
    let mut last = 0;
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        last = entry.raw_file_position() + entry.size();
        begins.insert(entry.raw_header_position(), path);
    }
    begins.insert(last.next_multiple_of(BLOCK as u64), "its end".to_owned());
    let mut bytes = whole.clone();
    for place in (0..bytes.len()).step_by(3) {
        let (_, file) = begins.range(..=place as u64).next_back().unwrap();
        let mask = 1_u8 << (place % 8);
        bytes[place] ^= mask;
        let said = complaint(folder, &bytes);
        assert!(said.contains(file), "byte {place} of {file}: {said}");
        bytes[place] ^= mask;
    }
    assert_eq!(bytes, whole);
}

#[test]
fn a_bundle_that_is_cut_off_or_goes_on_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut bytes = write_sample(folder, "whole");
    for length in (0..bytes.len()).step_by(61) {
        complaint(folder, &bytes[..length]);
    }
    bytes.push(0);
    assert!(complaint(folder, &bytes).contains("its end"));
}

#[test]
fn a_bundle_without_a_file_that_its_index_names_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (bundle, mut contents) = sample();
    let (missing, _) = contents.pop_first().unwrap();
    let path = folder.join("bundle");
    let error = write_bundle(&path, &bundle, contents).unwrap_err();
    assert!(error.to_string().contains(&missing), "{error}");
    assert!(!path.exists());
}
