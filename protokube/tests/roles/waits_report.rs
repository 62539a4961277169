//! The report of waits is written to the state store when they change, and not otherwise, also if the store fails meanwhile.

use crate::store::store_in;
use crate::test_host::INSTANCE;
use aws_client::store::Store;
use futures::FutureExt;
use futures::future::BoxFuture;
use node::report::Status;
use node::waits::{Wait, Waits, read_waits, waits_key};
use proptest::prelude::*;
use protokube_role::current_waits::{CurrentWaits, WRITE_INTERVAL, WaitsReporter};
use protokube_role::log::{Log, RoleLog};
use std::cell::Cell;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use time::OffsetDateTime;

thread_local! {
    /// Virtual time; only the test advances it.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn virtual_sleep(time: Duration) -> BoxFuture<'static, ()> {
    let until = NOW.get() + time;
    async move {
        while NOW.get() < until {
            tokio::task::yield_now().await;
        }
    }
    .boxed()
}

fn virtual_clock() -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + NOW.get()
}

/// Longest time in seconds until a change is in the store: a write may have been just before, or may have failed.
const MAX_DELAY: u64 = 75;

/// An event of one second.
#[derive(Clone, Debug)]
enum Event {
    Nothing,
    WaitSet(u8, u8),
    WaitCleared(u8),
    StoreBroken,
    StoreRepaired,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Nothing),
        3 => (0..3_u8, 0..3_u8).prop_map(|(role, why)| Event::WaitSet(role, why)),
        2 => (0..3_u8).prop_map(Event::WaitCleared),
        1 => Just(Event::StoreBroken),
        1 => Just(Event::StoreRepaired),
    ]
}

/// A state store in a folder, and the current waits of a host.
struct WaitsFixture {
    folder: TempDir,
    store: Store,
    current_waits: Arc<CurrentWaits>,
}

impl WaitsFixture {
    async fn new() -> Self {
        NOW.set(Duration::ZERO);
        let folder = TempDir::new().unwrap();
        Self {
            store: store_in(folder.path()).await,
            folder,
            current_waits: Arc::new(CurrentWaits::with_clock(virtual_clock)),
        }
    }

    /// Runs the reporter until the test is over.
    async fn run_reporter_during<T>(&self, test: impl Future<Output = T>) -> T {
        let report = WaitsReporter {
            store: &self.store,
            current_waits: &self.current_waits,
            instance: INSTANCE,
            role_log: RoleLog::with_log(Log::from_fn(|_| ()), "report"),
            clock: virtual_clock,
            sleep: virtual_sleep,
        };
        tokio::select! {
            biased;
            ended = report.keep_report() => panic!("{ended:?}"),
            over = test => over,
        }
    }

    /// Makes the object unreadable and unwritable, with a folder in its place.
    fn break_store(&self) {
        let [there, aside] = self.object_paths();
        if !there.is_dir() {
            let _ = fs::rename(&there, aside);
            fs::create_dir_all(there).unwrap();
        }
    }

    fn repair_store(&self) {
        let [there, aside] = self.object_paths();
        if there.is_dir() {
            fs::remove_dir(&there).unwrap();
            let _ = fs::rename(aside, there);
        }
    }

    fn object_paths(&self) -> [std::path::PathBuf; 2] {
        [waits_key(INSTANCE), "aside".to_owned()].map(|key| self.folder.path().join(key))
    }

    fn play_event(&self, event: &Event) {
        const ROLES: [&str; 3] = ["etcd-main", "dns", "addons"];
        match event {
            Event::Nothing => {}
            Event::WaitSet(role, why) => {
                let (role, why) = (ROLES[usize::from(*role)], format!("why {why}"));
                self.current_waits.set_wait(role, "", Status::Failed, &why);
            }
            Event::WaitCleared(role) => {
                self.current_waits.clear_wait(ROLES[usize::from(*role)], "");
            }
            Event::StoreBroken => self.break_store(),
            Event::StoreRepaired => self.repair_store(),
        }
    }

    async fn read_waits(&self) -> Option<Waits> {
        let bytes = self.store.get(&waits_key(INSTANCE)).await.unwrap()?.bytes;
        Some(read_waits(&bytes, INSTANCE).unwrap())
    }

    /// Role, message and begin in seconds of all stored waits.
    async fn stored_waits(&self) -> Vec<(String, String, i64)> {
        let seconds = |wait: &Wait| {
            let format = &time::format_description::well_known::Rfc3339;
            let since = OffsetDateTime::parse(&wait.since, format).unwrap();
            since.unix_timestamp()
        };
        let summary = |wait: Wait| (wait.role.clone(), wait.message.clone(), seconds(&wait));
        let written = self.read_waits().await;
        written
            .into_iter()
            .flat_map(|all| all.waits)
            .map(summary)
            .collect()
    }
}

/// Advances the time by a second, and runs what is due.
async fn pass_one_second() {
    NOW.set(NOW.get() + Duration::from_secs(1));
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
}

async fn pass_seconds(count: u64) {
    for _ in 0..count {
        pass_one_second().await;
    }
}

fn role_messages(waits: &[Wait]) -> Vec<(String, String)> {
    let pair = |wait: &Wait| (wait.role.clone(), wait.message.clone());
    waits.iter().map(pair).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_store_has_what_stands_and_is_written_only_when_that_changed_and_not_often(
        events in proptest::collection::vec(any_event(), 0..100),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = WaitsFixture::new().await;
            fixture.run_reporter_during(async {
                let (mut writes, mut last) = (0, None::<Duration>);
                for event in &events {
                    fixture.play_event(event);
                    pass_one_second().await;
                    let now = fixture.store.writes();
                    prop_assert!(now <= writes + 1);
                    if now > writes {
                        let pause = last.map_or(WRITE_INTERVAL, |last| NOW.get().saturating_sub(last));
                        prop_assert!(pause >= WRITE_INTERVAL, "{pause:?}");
                        (writes, last) = (now, Some(NOW.get()));
                    }
                }
                fixture.repair_store();
                pass_seconds(MAX_DELAY).await;
                let waits = fixture.read_waits().await.map(|one| one.waits).unwrap_or_default();
                prop_assert_eq!(role_messages(&waits), role_messages(&fixture.current_waits.list_waits()));
                let (reads, writes) = (fixture.store.reads(), fixture.store.writes());
                pass_seconds(MAX_DELAY).await;
                prop_assert_eq!((fixture.store.reads(), fixture.store.writes()), (reads, writes));
                Ok(())
            })
            .await
        })?;
    }
}

/// A host without any wait costs one read of the store.
#[tokio::test]
async fn an_instance_where_all_is_well_writes_nothing() {
    let fixture = WaitsFixture::new().await;
    fixture
        .run_reporter_during(async {
            fixture.play_event(&Event::WaitSet(0, 0));
            pass_seconds(5).await;
            fixture.play_event(&Event::WaitCleared(0));
            pass_seconds(3600).await;
        })
        .await;
    assert_eq!((fixture.store.reads(), fixture.store.writes()), (1, 0));
}

#[tokio::test]
async fn how_long_a_role_has_not_been_well_outlives_other_words_and_other_protokubes() {
    let fixture = WaitsFixture::new().await;
    let etcd = |why: &str, since| ("etcd-main".to_owned(), why.to_owned(), since);
    fixture
        .run_reporter_during(async {
            pass_seconds(100).await;
            fixture.play_event(&Event::WaitSet(0, 0));
            pass_seconds(100).await;
            assert_eq!(fixture.stored_waits().await, [etcd("why 0", 100)]);
            fixture.play_event(&Event::WaitSet(0, 1));
            pass_seconds(100).await;
            assert_eq!(fixture.stored_waits().await, [etcd("why 1", 100)]);
        })
        .await;
    let next = WaitsFixture {
        current_waits: Arc::new(CurrentWaits::with_clock(virtual_clock)),
        ..fixture
    };
    next.run_reporter_during(async {
        pass_seconds(5).await;
        next.play_event(&Event::WaitSet(0, 2));
        pass_seconds(95).await;
        assert_eq!(next.stored_waits().await, [etcd("why 2", 100)]);
        next.play_event(&Event::WaitCleared(0));
        pass_seconds(100).await;
        assert_eq!(next.stored_waits().await, []);
        next.play_event(&Event::WaitSet(0, 2));
        pass_seconds(100).await;
        assert_eq!(next.stored_waits().await, [etcd("why 2", 500)]);
    })
    .await;
}
