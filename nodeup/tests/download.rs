//! Downloads: whatever servers, cuts and leftovers do, a file in the cache is the right one.
#![cfg(test)]

mod support;

use node::config::{Arch, Asset};
use nodeup::digest;
use nodeup::download::{Downloads, Limits};
use proptest::prelude::*;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::files::{Files, Mood};
use tempfile::TempDir;

/// Patient where time is not the matter: machines that test are busy.
fn limits(rounds: u32) -> Limits {
    Limits {
        parallel: 4,
        connect: Duration::from_mins(1),
        idle: Duration::from_mins(1),
        rounds,
        pause: Duration::from_millis(1),
        ..Limits::default()
    }
}

fn sha256(content: &[u8]) -> String {
    let mut sum = digest::Sha256::default();
    sum.update(content);
    sum.hex()
}

fn asset(content: &[u8], urls: &[String]) -> Asset {
    Asset {
        name: "kubelet".into(),
        arch: Arch::Amd64,
        urls: urls.to_vec(),
        sha256: Some(sha256(content)),
    }
}

/// One run: the path or the error, and what was told.
fn run(cache: &Path, asset: &Asset, rounds: u32) -> (Result<PathBuf, String>, Vec<String>) {
    run_with(cache, asset, limits(rounds))
}

fn run_with(cache: &Path, asset: &Asset, limits: Limits) -> (Result<PathBuf, String>, Vec<String>) {
    let told = RefCell::new(Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ended = runtime.block_on(async {
        let downloads = Downloads::new(cache.to_owned(), limits).unwrap();
        let hear = |cause: &str| told.borrow_mut().push(cause.to_owned());
        downloads
            .fetch_all(std::slice::from_ref(asset), &hear)
            .await
    });
    let path = ended.map(|mut all| all.remove(asset.sha256.as_ref().unwrap()).unwrap());
    (
        path.map_err(|error| format!("{error:#}")),
        told.into_inner(),
    )
}

/// What an earlier run, a crash or somebody left.
#[derive(Clone, Debug)]
enum Left {
    Nothing,
    /// So many of the content's bytes.
    Prefix(usize),
    /// Bytes of something else.
    Other(Vec<u8>),
    /// The content and more.
    Longer(Vec<u8>),
}

impl Left {
    fn bytes(&self, content: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Nothing => None,
            Self::Prefix(length) => Some(content[..(*length).min(content.len())].to_vec()),
            Self::Other(bytes) => Some(bytes.clone()),
            Self::Longer(more) => Some([content, more].concat()),
        }
    }
}

fn left() -> impl Strategy<Value = Left> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..600);
    prop_oneof![
        Just(Left::Nothing),
        (0..500_usize).prop_map(Left::Prefix),
        bytes().prop_map(Left::Other),
        bytes().prop_map(Left::Longer),
    ]
}

fn mood() -> impl Strategy<Value = Mood> {
    prop_oneof![
        Just(Mood::Honest),
        (0..600_usize).prop_map(Mood::Cut),
        (0..600_usize).prop_map(Mood::CutUnsaid),
        Just(Mood::IgnoresRange),
        (0..600_usize).prop_map(Mood::IgnoresRangeAndCuts),
        Just(Mood::OtherRange),
        prop::collection::vec(any::<u8>(), 0..600).prop_map(Mood::Other),
        Just(Mood::Status("503 Service Unavailable")),
        Just(Mood::Status("404 Not Found")),
        Just(Mood::Status("416 Range Not Satisfiable")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_never_holds_a_wrong_file_and_a_good_server_mends_everything(
        content in prop::collection::vec(any::<u8>(), 0..500),
        part in left(),
        kept in left(),
        moods in prop::collection::vec(mood(), 0..7),
        rounds in 1..3_u32,
    ) {
        let folder = TempDir::new().unwrap();
        let cache = folder.path().join("cache");
        let target = cache.join(sha256(&content));
        fs::create_dir(&cache).unwrap();
        for (left, path) in [(part, target.with_extension("part")), (kept, target.clone())] {
            if let Some(bytes) = left.bytes(&content) {
                fs::write(path, bytes).unwrap();
            }
        }
        let server = Files::serving(&content, moods);
        let asset = asset(&content, &[server.url("a"), server.url("b")]);
        let mut runs = 0;
        loop {
            let good = server.is_honest_now();
            match run(&cache, &asset, rounds).0 {
                Ok(path) => {
                    prop_assert_eq!(&path, &target);
                    prop_assert_eq!(fs::read(&path).unwrap(), content);
                    break;
                }
                Err(error) => {
                    prop_assert!(!good, "{error}");
                    prop_assert!(!target.exists());
                    prop_assert!(error.contains("kubelet") && error.contains("http://"), "{error}");
                }
            }
            runs += 1;
            prop_assert!(runs < 20);
        }
    }
}

#[test]
fn a_cut_at_any_byte_is_resumed_there_and_nothing_is_sent_twice() {
    let content: Vec<u8> = (0..60_u8).collect();
    for cut in 0..content.len() {
        let folder = TempDir::new().unwrap();
        let server = Files::serving(&content, vec![Mood::Cut(cut)]);
        let (path, _) = run(folder.path(), &asset(&content, &[server.url("a")]), 2);
        assert_eq!(fs::read(path.unwrap()).unwrap(), content, "cut at {cut}");
        assert_eq!(server.sent(), content.len(), "cut at {cut}");
    }
}

#[test]
fn what_is_there_is_not_asked_for_again() {
    let folder = TempDir::new().unwrap();
    let server = Files::serving(b"content", Vec::new());
    let asset = asset(b"content", &[server.url("a")]);
    for _ in 0..2 {
        run(folder.path(), &asset, 1).0.unwrap();
    }
    assert_eq!(server.requests(), 1);
}

#[test]
fn a_wrong_file_is_removed_and_said_with_place_and_both_sums() {
    let folder = TempDir::new().unwrap();
    let server = Files::serving(b"content", vec![Mood::Other(b"malice".to_vec()); 9]);
    let asset = asset(b"content", &[server.url("a")]);
    let error = run(folder.path(), &asset, 3).0.unwrap_err();
    for part in [&server.url("a"), &sha256(b"content"), &sha256(b"malice")] {
        assert!(error.contains(part.as_str()), "{error}");
    }
    // It would be wrong again: asked once.
    assert_eq!(server.requests(), 1);
    let left = fs::read_dir(folder.path()).unwrap();
    let sizes = left.map(|entry| entry.unwrap().metadata().unwrap().len());
    assert_eq!(sizes.sum::<u64>(), 0);
}

#[test]
fn mirrors_follow_in_turn_and_each_cause_is_told_once() {
    let folder = TempDir::new().unwrap();
    let down = Files::serving(b"content", vec![Mood::Status("503 Service Unavailable"); 9]);
    let good = Files::serving(b"content", vec![Mood::Status("503 Service Unavailable"); 3]);
    let urls = [down.url("first"), good.url("mirror")];
    let (path, told) = run(folder.path(), &asset(b"content", &urls), 5);
    assert!(path.is_ok());
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("first") && told[0].contains("503"),
        "{told:?}"
    );
}

#[test]
fn silence_ends_an_attempt_and_not_the_download() {
    let folder = TempDir::new().unwrap();
    let server = Files::serving(b"content", vec![Mood::Silent(3)]);
    let impatient = Limits {
        idle: Duration::from_millis(500),
        ..limits(100)
    };
    let asset = asset(b"content", &[server.url("a")]);
    let (path, told) = run_with(folder.path(), &asset, impatient);
    assert_eq!(fs::read(path.unwrap()).unwrap(), b"content");
    assert!(told[0].contains("timed out"), "{told:?}");
}

#[test]
fn a_truncated_answer_is_said_to_be_one() {
    let folder = TempDir::new().unwrap();
    let server = Files::serving(b"content", vec![Mood::Cut(3); 9]);
    let (path, told) = run(folder.path(), &asset(b"content", &[server.url("a")]), 1);
    assert!(path.is_ok(), "three bytes more each time");
    assert!(told[0].contains("3 of 7 bytes"), "{told:?}");
}

#[test]
fn a_disk_without_room_is_said_before_anything_is_written() {
    let folder = TempDir::new().unwrap();
    let server = Files::serving(b"content", vec![Mood::Claims(1 << 60); 2]);
    let any = Limits {
        largest: u64::MAX,
        ..limits(3)
    };
    let asset = asset(b"content", &[server.url("a")]);
    let error = run_with(folder.path(), &asset, any).0;
    let error = error.unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(
        error.contains("not enough disk space") && error.contains("rootVolumeSize"),
        "{error}"
    );
    assert_eq!(server.requests(), 1);
}

#[test]
fn a_server_that_sends_more_than_anything_has_fills_no_disk() {
    // Whether it says so or goes on without an end; another mirror is asked all the same.
    let claims = Mood::Claims(4097);
    let endless = Mood::Other(vec![0; 1 << 20]);
    for mood in [claims, endless, Mood::CutUnsaid(usize::MAX)] {
        let folder = TempDir::new().unwrap();
        let larger = vec![0; 1 << 20];
        let unsaid = matches!(mood, Mood::CutUnsaid(_));
        let bad = Files::serving(if unsaid { &larger } else { b"content" }, vec![mood; 9]);
        let good = Files::serving(b"content", Vec::new());
        let small = Limits {
            largest: 4096,
            ..limits(1)
        };
        let alone = asset(b"content", &[bad.url("a")]);
        let (ended, told) = run_with(folder.path(), &alone, small.clone());
        assert!(
            ended.is_err() && told[0].contains("more than the limit of 4096"),
            "{told:?}"
        );
        let part = folder
            .path()
            .join(sha256(b"content"))
            .with_extension("part");
        assert_eq!(fs::metadata(part).unwrap().len(), 0);
        let both = asset(b"content", &[bad.url("a"), good.url("b")]);
        assert!(run_with(folder.path(), &both, small).0.is_ok());
    }
}

#[test]
fn two_runs_do_not_write_one_file() {
    let folder = TempDir::new().unwrap();
    let server = Files::serving(b"content", Vec::new());
    let asset = asset(b"content", &[server.url("a")]);
    let part = folder
        .path()
        .join(sha256(b"content"))
        .with_extension("part");
    let other = fs::File::create(part).unwrap();
    other.lock().unwrap();
    let error = run(folder.path(), &asset, 1).0.unwrap_err();
    assert!(error.contains("another nodeup"), "{error}");
    drop(other);
    run(folder.path(), &asset, 1).0.unwrap();
}

#[test]
fn what_has_no_sum_or_a_strange_one_is_not_asked_for() {
    let folder = TempDir::new().unwrap();
    let server = Files::serving(b"content", Vec::new());
    for sum in [None, Some("../../etc/passwd"), Some("ABC")] {
        let asset = Asset {
            sha256: sum.map(str::to_owned),
            ..asset(b"content", &[server.url("a")])
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let downloads = Downloads::new(folder.path().to_owned(), limits(1)).unwrap();
        let error = runtime
            .block_on(downloads.fetch_one(&asset, &|_| ()))
            .unwrap_err();
        assert!(error.to_string().contains("kubelet"), "{error:#}");
    }
    assert_eq!(server.requests(), 0);
}
