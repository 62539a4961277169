//! Tests of downloads: whatever servers, interruptions and leftover files do, a file in the cache has the expected content.
#![cfg(test)]

mod support;

use node::config::{Arch, Asset};
use nodeup::digest;
use nodeup::download::{DownloadLimits, Downloads};
use proptest::prelude::*;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::files::{Behaviour, FileServer};
use tempfile::TempDir;

/// Long timeouts where time does not matter, because test hosts may be busy.
fn test_limits(rounds: u32) -> DownloadLimits {
    DownloadLimits {
        parallel: 4,
        connect: Duration::from_mins(1),
        idle: Duration::from_mins(1),
        rounds,
        pause: Duration::from_millis(1),
        ..DownloadLimits::default()
    }
}

fn sha256(content: &[u8]) -> String {
    let mut sum = digest::Sha256::default();
    sum.update(content);
    sum.hex()
}

fn make_asset(content: &[u8], urls: &[String]) -> Asset {
    Asset {
        name: "kubelet".into(),
        arch: Arch::Amd64,
        urls: urls.to_vec(),
        sha256: Some(sha256(content)),
    }
}

/// Runs one download. Returns the path or the error, and the logged causes.
fn run(cache: &Path, asset: &Asset, rounds: u32) -> (Result<PathBuf, String>, Vec<String>) {
    run_with(cache, asset, test_limits(rounds))
}

fn run_with(
    cache: &Path,
    asset: &Asset,
    limits: DownloadLimits,
) -> (Result<PathBuf, String>, Vec<String>) {
    let logged = RefCell::new(Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ended = runtime.block_on(async {
        let downloads = Downloads::new(cache.to_owned(), limits).unwrap();
        let hear = |cause: &str| logged.borrow_mut().push(cause.to_owned());
        downloads
            .fetch_all(std::slice::from_ref(asset), &hear)
            .await
    });
    let path = ended.map(|mut all| all.remove(asset.sha256.as_ref().unwrap()).unwrap());
    (
        path.map_err(|error| format!("{error:#}")),
        logged.into_inner(),
    )
}

/// What an earlier run, a crash or another program left as the incomplete file.
#[derive(Clone, Debug)]
enum Leftover {
    Nothing,
    /// This many bytes of the expected content.
    Prefix(usize),
    Other(Vec<u8>),
    /// The expected content and further bytes.
    Longer(Vec<u8>),
}

impl Leftover {
    fn to_bytes(&self, content: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Nothing => None,
            Self::Prefix(length) => Some(content[..(*length).min(content.len())].to_vec()),
            Self::Other(bytes) => Some(bytes.clone()),
            Self::Longer(more) => Some([content, more].concat()),
        }
    }
}

fn any_leftover() -> impl Strategy<Value = Leftover> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..600);
    prop_oneof![
        Just(Leftover::Nothing),
        (0..500_usize).prop_map(Leftover::Prefix),
        bytes().prop_map(Leftover::Other),
        bytes().prop_map(Leftover::Longer),
    ]
}

fn any_behaviour() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        Just(Behaviour::Honest),
        (0..600_usize).prop_map(Behaviour::Cut),
        (0..600_usize).prop_map(Behaviour::CutUnsaid),
        Just(Behaviour::IgnoresRange),
        (0..600_usize).prop_map(Behaviour::IgnoresRangeAndCuts),
        Just(Behaviour::OtherRange),
        prop::collection::vec(any::<u8>(), 0..600).prop_map(Behaviour::Other),
        Just(Behaviour::Status("503 Service Unavailable")),
        Just(Behaviour::Status("404 Not Found")),
        Just(Behaviour::Status("416 Range Not Satisfiable")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_never_holds_a_wrong_file_and_a_good_server_mends_everything(
        content in prop::collection::vec(any::<u8>(), 0..500),
        part in any_leftover(),
        kept in any_leftover(),
        behaviours in prop::collection::vec(any_behaviour(), 0..7),
        rounds in 1..3_u32,
    ) {
        let folder = TempDir::new().unwrap();
        let cache = folder.path().join("cache");
        let target = cache.join(sha256(&content));
        fs::create_dir(&cache).unwrap();
        for (left, path) in [(part, target.with_extension("part")), (kept, target.clone())] {
            if let Some(bytes) = left.to_bytes(&content) {
                fs::write(path, bytes).unwrap();
            }
        }
        let server = FileServer::start(&content, behaviours);
        let asset = make_asset(&content, &[server.url("a"), server.url("b")]);
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
        let server = FileServer::start(&content, vec![Behaviour::Cut(cut)]);
        let (path, _) = run(folder.path(), &make_asset(&content, &[server.url("a")]), 2);
        assert_eq!(fs::read(path.unwrap()).unwrap(), content, "cut at {cut}");
        assert_eq!(server.bytes_sent(), content.len(), "cut at {cut}");
    }
}

#[test]
fn what_is_there_is_not_asked_for_again() {
    let folder = TempDir::new().unwrap();
    let server = FileServer::start(b"content", Vec::new());
    let asset = make_asset(b"content", &[server.url("a")]);
    for _ in 0..2 {
        run(folder.path(), &asset, 1).0.unwrap();
    }
    assert_eq!(server.request_count(), 1);
}

#[test]
fn a_wrong_file_is_removed_and_said_with_place_and_both_sums() {
    let folder = TempDir::new().unwrap();
    let server = FileServer::start(b"content", vec![Behaviour::Other(b"malice".to_vec()); 9]);
    let asset = make_asset(b"content", &[server.url("a")]);
    let error = run(folder.path(), &asset, 3).0.unwrap_err();
    for part in [&server.url("a"), &sha256(b"content"), &sha256(b"malice")] {
        assert!(error.contains(part.as_str()), "{error}");
    }
    // A retry would return the same wrong content, so there is one request only.
    assert_eq!(server.request_count(), 1);
    let left = fs::read_dir(folder.path()).unwrap();
    let sizes = left.map(|entry| entry.unwrap().metadata().unwrap().len());
    assert_eq!(sizes.sum::<u64>(), 0);
}

#[test]
fn mirrors_follow_in_turn_and_each_cause_is_told_once() {
    let folder = TempDir::new().unwrap();
    let down = FileServer::start(
        b"content",
        vec![Behaviour::Status("503 Service Unavailable"); 9],
    );
    let good = FileServer::start(
        b"content",
        vec![Behaviour::Status("503 Service Unavailable"); 3],
    );
    let urls = [down.url("first"), good.url("mirror")];
    let (path, logged) = run(folder.path(), &make_asset(b"content", &urls), 5);
    assert!(path.is_ok());
    assert_eq!(logged.len(), 2, "{logged:?}");
    assert!(
        logged[0].contains("first") && logged[0].contains("503"),
        "{logged:?}"
    );
}

#[test]
fn silence_ends_an_attempt_and_not_the_download() {
    let folder = TempDir::new().unwrap();
    let server = FileServer::start(b"content", vec![Behaviour::Silent(3)]);
    let impatient = DownloadLimits {
        idle: Duration::from_millis(500),
        ..test_limits(100)
    };
    let asset = make_asset(b"content", &[server.url("a")]);
    let (path, logged) = run_with(folder.path(), &asset, impatient);
    assert_eq!(fs::read(path.unwrap()).unwrap(), b"content");
    assert!(logged[0].contains("timed out"), "{logged:?}");
}

#[test]
fn a_truncated_answer_is_said_to_be_one() {
    let folder = TempDir::new().unwrap();
    let server = FileServer::start(b"content", vec![Behaviour::Cut(3); 9]);
    let (path, logged) = run(
        folder.path(),
        &make_asset(b"content", &[server.url("a")]),
        1,
    );
    assert!(path.is_ok(), "three bytes more each time");
    assert!(logged[0].contains("3 of 7 bytes"), "{logged:?}");
}

#[test]
fn a_disk_without_room_is_said_before_anything_is_written() {
    let folder = TempDir::new().unwrap();
    let server = FileServer::start(b"content", vec![Behaviour::Claims(1 << 60); 2]);
    let any = DownloadLimits {
        largest: u64::MAX,
        ..test_limits(3)
    };
    let asset = make_asset(b"content", &[server.url("a")]);
    let error = run_with(folder.path(), &asset, any).0;
    let error = error.unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(
        error.contains("not enough disk space") && error.contains("rootVolumeSize"),
        "{error}"
    );
    assert_eq!(server.request_count(), 1);
}

#[test]
fn a_server_that_sends_more_than_anything_has_fills_no_disk() {
    // The server may announce the length or send without end; another mirror is tried in both cases.
    let claims = Behaviour::Claims(4097);
    let endless = Behaviour::Other(vec![0; 1 << 20]);
    for behaviour in [claims, endless, Behaviour::CutUnsaid(usize::MAX)] {
        let folder = TempDir::new().unwrap();
        let larger = vec![0; 1 << 20];
        let unsaid = matches!(behaviour, Behaviour::CutUnsaid(_));
        let bad = FileServer::start(
            if unsaid { &larger } else { b"content" },
            vec![behaviour; 9],
        );
        let good = FileServer::start(b"content", Vec::new());
        let small = DownloadLimits {
            largest: 4096,
            ..test_limits(1)
        };
        let alone = make_asset(b"content", &[bad.url("a")]);
        let (ended, logged) = run_with(folder.path(), &alone, small.clone());
        assert!(
            ended.is_err() && logged[0].contains("more than the limit of 4096"),
            "{logged:?}"
        );
        let part = folder
            .path()
            .join(sha256(b"content"))
            .with_extension("part");
        assert_eq!(fs::metadata(part).unwrap().len(), 0);
        let both = make_asset(b"content", &[bad.url("a"), good.url("b")]);
        assert!(run_with(folder.path(), &both, small).0.is_ok());
    }
}

#[test]
fn two_runs_do_not_write_one_file() {
    let folder = TempDir::new().unwrap();
    let server = FileServer::start(b"content", Vec::new());
    let asset = make_asset(b"content", &[server.url("a")]);
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
    let server = FileServer::start(b"content", Vec::new());
    for sum in [None, Some("../../etc/passwd"), Some("ABC")] {
        let asset = Asset {
            sha256: sum.map(str::to_owned),
            ..make_asset(b"content", &[server.url("a")])
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let downloads = Downloads::new(folder.path().to_owned(), test_limits(1)).unwrap();
        let error = runtime
            .block_on(downloads.fetch_one(&asset, &|_| ()))
            .unwrap_err();
        assert!(error.to_string().contains("kubelet"), "{error:#}");
    }
    assert_eq!(server.request_count(), 0);
}
