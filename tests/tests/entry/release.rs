//! `tests/release/run`: which programs it builds, and that its archives depend on the commit alone.

use crate::checkout_folder;
use std::path::Path;
use std::process::{Command, Output};
use test_support::write_script;

/// Stands for cargo: writes a program for each package, that says what it was built as and with which sources replaced.
const CARGO: &str = r#"
case $1 in
    pkgid) echo "path+file:///anywhere/cli#0.1.0" ;;
    zigbuild)
        shift
        while [ $# -gt 0 ]; do
            case $1 in
                --profile) profile=$2 ;;
                --target) target=$2 ;;
                -p) names="${names:-} ${2%cli}" && [ "$2" != cli ] || names="${names:-} kctl" ;;
            esac
            shift
        done
        mkdir -p "$CARGO_TARGET_DIR/$target/$profile"
        for name in $names; do echo "$target $profile $name" >"$CARGO_TARGET_DIR/$target/$profile/$name"; done
        for flag in $RUSTFLAGS; do case $profile$flag in *--remap-path-prefix=*=/* | release-Cforce-unwind-tables=no) ;; *) echo "not remapped: $flag" >&2; exit 1 ;; esac; done
        ;;
esac"#;

fn run_git(folder: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]);
    let date = "2026-01-02T03:04:05Z";
    command.args(words).current_dir(folder);
    command.env("GIT_AUTHOR_DATE", date);
    command.env("GIT_COMMITTER_DATE", date);
    assert!(command.status().expect("git").success(), "{words:?}");
}

/// A checkout of the script, the license, a page and what the script runs, below `parent`.
fn prepare_checkout(parent: &Path) {
    let own = parent.join("checkout");
    std::fs::create_dir_all(own.join("tests/release")).expect("a folder");
    std::fs::create_dir_all(own.join("tests/assets")).expect("a folder");
    for file in ["tests/release/run", "LICENSE"] {
        std::fs::copy(checkout_folder().join(file), own.join(file)).expect("a copy");
    }
    std::fs::create_dir(own.join("docs")).expect("a folder");
    std::fs::write(own.join("docs/page.md"), "A page.").expect("a page");
    write_script(&own.join("tests/assets/build"), "");
    write_script(&own.join("tests/venv"), "echo /nowhere");
    write_script(&parent.join("cargo"), CARGO);
    write_script(&parent.join("rustc"), "echo /toolchain");
    run_git(&own, &["init", "--quiet"]);
    run_git(&own, &["add", "--all"]);
    run_git(&own, &["commit", "--quiet", "--message", "all"]);
}

fn run_release(parent: &Path, mask: &str) -> Output {
    let path = format!("{}:/usr/bin:/bin", parent.display());
    let run = format!("umask {mask}; exec /bin/sh checkout/tests/release/run");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &run]).current_dir(parent);
    command.env("PATH", path);
    command.env("KCTL_CACHE", parent.join("cache"));
    command.env_remove("SOURCE_DATE_EPOCH");
    command.output().expect("it runs")
}

/// The lines of SHA256SUMS.
fn checksum_lines(ran: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let folder = String::from_utf8_lossy(&ran.stdout);
    let sums = Path::new(folder.trim()).join("SHA256SUMS");
    let sums = std::fs::read_to_string(sums).expect("checksums");
    sums.lines().map(str::to_owned).collect()
}

#[test]
fn two_checkouts_of_a_commit_give_the_same_archives() {
    let [one, other] = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
    prepare_checkout(one.path());
    prepare_checkout(other.path());
    let first = checksum_lines(&run_release(one.path(), "022"));
    assert_eq!(first, checksum_lines(&run_release(other.path(), "077")));
    let files: Vec<&str> = first.iter().filter_map(|line| line.get(66..)).collect();
    assert_eq!(
        files,
        [
            "kctl-0.1.0-linux-amd64.tar.gz",
            "kctl-0.1.0-linux-arm64.tar.gz",
            "linux/amd64/kctl",
            "linux/amd64/nodeup",
            "linux/amd64/protokube",
            "linux/arm64/kctl",
            "linux/arm64/nodeup",
            "linux/arm64/protokube",
        ]
    );
    let mut list = Command::new("tar");
    list.arg("--list").arg("--file");
    let listed = list.arg(one.path().join("cache/release").join(files[1]));
    let listed = String::from_utf8(listed.output().expect("tar").stdout).expect("text");
    let inside: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("kctl-0.1.0-linux-arm64/"))
        .filter(|line| !line.is_empty() && !line.ends_with('/'))
        .collect();
    assert_eq!(
        inside,
        [
            "LICENSE",
            "docs/page.md",
            "kctl",
            "linux/amd64/nodeup",
            "linux/amd64/protokube",
            "linux/arm64/nodeup",
            "linux/arm64/protokube",
        ]
    );
}

#[test]
fn archives_of_what_is_not_committed_are_named_so() {
    let parent = tempfile::tempdir().expect("a folder");
    prepare_checkout(parent.path());
    std::fs::write(parent.path().join("checkout/LICENSE"), "another").expect("a change");
    let ran = run_release(parent.path(), "022");
    assert!(checksum_lines(&ran)[0].ends_with("  kctl-0.1.0-dirty-linux-amd64.tar.gz"));
}

#[test]
fn a_kctl_that_is_larger_than_promised_gets_no_archive() {
    let parent = tempfile::tempdir().expect("a folder");
    prepare_checkout(parent.path());
    let script = parent.path().join("checkout/tests/release/run");
    let text = std::fs::read_to_string(&script).expect("the script");
    assert!(text.contains("limit=34000000\n"));
    std::fs::write(&script, text.replace("limit=34000000\n", "limit=10\n")).expect("a change");
    let ran = run_release(parent.path(), "022");
    assert!(!ran.status.success());
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("10 are promised"), "{said}");
    assert!(!parent.path().join("cache/release/SHA256SUMS").exists());
}
