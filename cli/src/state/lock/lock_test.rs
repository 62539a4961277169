//! Locks in a store in a directory, whose clock is the file system's.

use super::*;
use aws_client::Clients;
use aws_client::store::Encryption;
use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

/// Nobody in these tests waits so long.
const LONG: Duration = Duration::from_hours(1);

const TERMS: LockOptions<'static> = LockOptions {
    what: "update",
    kind: LockKind::Changes,
    life: LONG,
    wait: Duration::ZERO,
};

struct Place {
    dir: tempfile::TempDir,
    keys: StoreKeys,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            keys: StoreKeys::new("demo.example.com"),
        }
    }

    /// The store as another process would open it: with a fence of its own.
    async fn store(&self) -> Store {
        let url = format!("file://{}", self.dir.path().display());
        Store::open(&url, &Clients::load(None, None).await).unwrap()
    }

    fn file(&self) -> std::path::PathBuf {
        Path::new(self.dir.path()).join(self.keys.lock(LockKind::Changes))
    }

    /// As if the lock had been written so long ago.
    fn aged(&self, age: Duration) {
        let file = File::options().write(true).open(self.file()).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    async fn put_foreign(&self) -> Version {
        let json = serde_json::json!({"who": "jane@elsewhere", "host": "elsewhere", "process": 7, "what": "update", "since": "2026-01-01T00:00:00Z", "renewed": 0, "life_ms": 30_000});
        let store = self.store().await;
        store
            .put(
                &self.keys.lock(LockKind::Changes),
                json.to_string().into_bytes(),
                Expect::Any,
            )
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn one_at_a_time_and_the_other_hears_at_once_who_it_is() {
    let place = Place::new();
    let (one, two) = (place.store().await, place.store().await);
    let lock = ClusterLock::acquire(&one, &place.keys, &TERMS, |_| {})
        .await
        .unwrap();
    let refused = ClusterLock::acquire(&two, &place.keys, &TERMS, |_| {}).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.kind, ErrorKind::Precondition);
    let said = refused.cause.expect("a cause").to_string();
    for words in [
        "demo.example.com is locked by",
        "(kctl update) since",
        "renewed 0s ago",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(
        refused
            .hints
            .iter()
            .any(|hint| hint.contains("kctl lock status"))
    );
    assert!(
        refused
            .hints
            .iter()
            .any(|hint| hint.contains("the lock is free in 1h00m"))
    );
    lock.release().await;
    ClusterLock::acquire(&two, &place.keys, &TERMS, |_| {})
        .await
        .unwrap();
}

#[tokio::test]
async fn what_has_expired_is_taken_over_and_that_is_said() {
    let place = Place::new();
    let store = place.store().await;
    place.put_foreign().await;
    place.aged(Duration::from_secs(29));
    assert!(
        ClusterLock::acquire(&store, &place.keys, &TERMS, |_| {})
            .await
            .is_err()
    );
    place.aged(Duration::from_secs(31));
    let all = RefCell::new(Vec::new());
    let hear = |words: &str| all.borrow_mut().push(words.to_owned());
    ClusterLock::acquire(&store, &place.keys, &TERMS, hear)
        .await
        .unwrap();
    let all = all.into_inner();
    assert_eq!(all.len(), 1);
    assert!(
        all[0].contains("expired (30s)") && all[0].contains("jane@elsewhere"),
        "{all:?}"
    );
}

#[tokio::test]
async fn who_waits_gets_it_when_the_other_gives_it_back() {
    let place = Place::new();
    let (one, two) = (place.store().await, place.store().await);
    let lock = ClusterLock::acquire(&one, &place.keys, &TERMS, |_| {})
        .await
        .unwrap();
    let patient = LockOptions {
        wait: LONG,
        ..TERMS
    };
    let all = RefCell::new(Vec::new());
    let hear = |words: &str| all.borrow_mut().push(words.to_owned());
    let given = RefCell::new(Some(lock));
    let waits = ClusterLock::acquire(&two, &place.keys, &patient, hear);
    let gives = async {
        while all.borrow().is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        let lock = given.take().expect("held");
        lock.release().await;
    };
    let (taken, ()) = tokio::join!(waits, gives);
    taken.unwrap();
    assert_eq!(all.borrow().len(), 1);
    assert!(
        all.borrow()[0].starts_with("waiting, for 1h00m at most"),
        "{all:?}"
    );
}

#[tokio::test]
async fn of_many_who_see_an_expired_lock_one_has_it() {
    let place = Place::new();
    place.put_foreign().await;
    place.aged(LONG);
    let mut stores = Vec::new();
    for _ in 0..20 {
        stores.push(place.store().await);
    }
    let all = stores
        .iter()
        .map(|store| ClusterLock::acquire(store, &place.keys, &TERMS, |_| {}));
    let taken = futures::future::join_all(all).await;
    assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 1);
}

#[tokio::test]
async fn a_renewal_makes_it_young_and_one_that_others_were_ahead_of_loses_it() {
    let place = Place::new();
    let store = place.store().await;
    let lock = ClusterLock::acquire(&store, &place.keys, &TERMS, |_| {})
        .await
        .unwrap();
    place.aged(Duration::from_mins(30));
    let unfenced = store.without_fence();
    lock.lease.renew_once(&unfenced).await.unwrap();
    let seen = ObservedLock::read(&store, &place.keys, LockKind::Changes)
        .await
        .unwrap()
        .expect("a lock");
    assert!(seen.age.expect("an age") < Duration::from_mins(30));
    assert_eq!(seen.holder.expect("a holder").renewed, 1);

    let foreign = place.put_foreign().await;
    let renewed = lock.lease.renew_once(&unfenced).await;
    assert!(matches!(renewed, Err(LockLoss::Taken)));
    assert!(!lock.is_lost(), "the thread closes the fence");
    store.fence().close();
    assert!(lock.is_lost());
    lock.release().await;
    let still = store
        .get(&place.keys.lock(LockKind::Changes))
        .await
        .unwrap()
        .expect("a lock");
    assert_eq!(still.version, foreign, "what was lost is not given back");
}

#[tokio::test]
async fn after_its_time_nothing_is_written_and_no_renewal_comes_back_from_that() {
    let place = Place::new();
    let store = place.store().await;
    let lock = ClusterLock::acquire(&store, &place.keys, &TERMS, |_| {})
        .await
        .unwrap();
    let write = async |key: &str| store.put(key, Vec::new(), Expect::Any).await;
    write("before").await.unwrap();
    let file = place.dir.path().join("before");
    let sha256 = store.sha256("before").await.unwrap().expect("an object");
    // As after a stop that was longer than its life.
    store.fence().allow_until(fence::boot_clock_now());
    for written in [
        write("after").await.map(drop),
        store.delete("before", Expect::Any).await,
        store
            .put_file("file", &file, &sha256, Encryption::S3Keys)
            .await,
    ] {
        assert!(
            matches!(written, Err(StoreError::Fenced { .. })),
            "{written:?}"
        );
    }
    let renewed = lock.lease.renew_once(&store.without_fence()).await;
    assert!(matches!(renewed, Err(LockLoss::Late(None))));
    assert!(matches!(
        write("after").await,
        Err(StoreError::Fenced { .. })
    ));
    assert!(store.get("after").await.unwrap().is_none());
    assert!(store.get("before").await.unwrap().is_some());
}

#[tokio::test]
async fn it_is_given_back_even_if_a_renewal_was_cut_off() {
    let place = Place::new();
    let store = place.store().await;
    let lock = ClusterLock::acquire(&store, &place.keys, &TERMS, |_| {})
        .await
        .unwrap();
    let before = lock.lease.held().clone();
    lock.lease.renew_once(&store.without_fence()).await.unwrap();
    // The renewal happened, and its answer was not heard.
    *lock.lease.held() = before;
    lock.release().await;
    assert!(
        store
            .get(&place.keys.lock(LockKind::Changes))
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(store.fence().remaining(), None);
}

/// A lock that is due for renewal every 700 ms.
const SHORT: LockOptions<'static> = LockOptions {
    life: Duration::from_millis(2100),
    ..TERMS
};

#[tokio::test]
async fn renewals_do_not_wait_for_what_the_process_computes() {
    let place = Place::new();
    let store = place.store().await;
    let lock = ClusterLock::acquire(&store, &place.keys, &SHORT, |_| {})
        .await
        .unwrap();
    let mut events = lock.start_renewals().unwrap();
    // Twice its life, on the only thread of the runtime.
    std::thread::sleep(SHORT.life * 2);
    store.put("after", Vec::new(), Expect::Any).await.unwrap();
    let seen = ObservedLock::read(&store, &place.keys, LockKind::Changes)
        .await
        .unwrap()
        .expect("a lock");
    assert!(seen.holder.expect("a holder").renewed >= 4);
    assert!(events.try_recv().is_err(), "nothing to tell");
    lock.release().await;
    assert!(!place.file().exists());
}

/// What happens to a lock while its holder cannot renew it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meanwhile {
    Nothing,
    TakenOver,
    Released,
}

#[tokio::test]
async fn what_was_held_up_goes_on_only_if_nobody_else_had_the_lock() {
    for meanwhile in [
        Meanwhile::Nothing,
        Meanwhile::TakenOver,
        Meanwhile::Released,
    ] {
        let place = Place::new();
        let store = place.store().await;
        let lock = ClusterLock::acquire(&store, &place.keys, &SHORT, |_| {})
            .await
            .unwrap();
        let mut events = lock.start_renewals().unwrap();
        // As after a stop that was longer than its life.
        store.fence().allow_until(fence::boot_clock_now());
        assert!(lock.is_paused() && !lock.is_lost());
        match meanwhile {
            Meanwhile::Nothing => {}
            Meanwhile::TakenOver => drop(place.put_foreign().await),
            Meanwhile::Released => std::fs::remove_file(place.file()).unwrap(),
        }
        let write = store.put("held-up", Vec::new(), Expect::Any);
        let told = async {
            let paused = events.recv().await;
            assert!(matches!(paused, Some(LockEvent::Paused(LockLoss::Late(_)))));
            events.recv().await
        };
        let (written, told) = tokio::join!(write, told);
        let goes_on = meanwhile == Meanwhile::Nothing;
        match told.expect("an event") {
            LockEvent::Resumed => assert!(goes_on, "{meanwhile:?}"),
            LockEvent::Lost(LockLoss::Taken) => assert!(!goes_on, "{meanwhile:?}"),
            other => panic!("{meanwhile:?}: {other:?}"),
        }
        assert_eq!(written.is_ok(), goes_on, "{meanwhile:?}: {written:?}");
        assert_eq!(
            place.dir.path().join("held-up").exists(),
            goes_on,
            "{meanwhile:?}"
        );
        assert_eq!(lock.is_lost(), !goes_on, "{meanwhile:?}");
        let stored = std::fs::read(place.file()).ok();
        lock.release().await;
        if !goes_on {
            assert_eq!(std::fs::read(place.file()).ok(), stored, "{meanwhile:?}");
        }
    }
}
