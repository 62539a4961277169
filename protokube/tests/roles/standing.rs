//! What roles wait for or refuse reaches the state store: when it changes, not while it stays, and whatever the store does meanwhile.

use crate::machine::INSTANCE;
use crate::store::store_in;
use aws_client::store::Store;
use futures::FutureExt;
use futures::future::BoxFuture;
use node::report::Status;
use node::waits::{Wait, Waits, read_waits, waits_key};
use proptest::prelude::*;
use protokube::log::{Log, RoleLog};
use protokube::standing::{CurrentWaits, EVERY, WaitsReporter};
use std::cell::Cell;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use time::OffsetDateTime;

thread_local! {
    /// Virtual time, which only the test lets pass.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn sleep(time: Duration) -> BoxFuture<'static, ()> {
    let until = NOW.get() + time;
    async move {
        while NOW.get() < until {
            tokio::task::yield_now().await;
        }
    }
    .boxed()
}

fn clock() -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + NOW.get()
}

/// So long does it take at most until the store has what stands: it may have been written just before, or could not be.
const SOON: u64 = 75;

/// What happens in a second.
#[derive(Clone, Debug)]
enum Event {
    Nothing,
    Stands(u8, u8),
    Over(u8),
    Breaks,
    IsMended,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Nothing),
        3 => (0..3_u8, 0..3_u8).prop_map(|(role, why)| Event::Stands(role, why)),
        2 => (0..3_u8).prop_map(Event::Over),
        1 => Just(Event::Breaks),
        1 => Just(Event::IsMended),
    ]
}

/// A state store in a folder, and what stands on a machine.
struct Scene {
    folder: TempDir,
    store: Store,
    standing: Arc<CurrentWaits>,
}

impl Scene {
    async fn new() -> Self {
        NOW.set(Duration::ZERO);
        let folder = TempDir::new().unwrap();
        Self {
            store: store_in(folder.path()).await,
            folder,
            standing: Arc::new(CurrentWaits::with_clock(clock)),
        }
    }

    /// What a protokube does until the test is over.
    async fn during<T>(&self, test: impl Future<Output = T>) -> T {
        let report = WaitsReporter {
            store: &self.store,
            standing: &self.standing,
            instance: INSTANCE,
            voice: RoleLog::with_log(Log::from_fn(|_| ()), "report"),
            clock,
            sleep,
        };
        tokio::select! {
            ended = report.keep_report() => panic!("{ended:?}"),
            over = test => over,
        }
    }

    /// The object cannot be read or written: a folder is in its place.
    fn breaks(&self) {
        let [there, aside] = self.places();
        if !there.is_dir() {
            let _ = fs::rename(&there, aside);
            fs::create_dir_all(there).unwrap();
        }
    }

    fn is_mended(&self) {
        let [there, aside] = self.places();
        if there.is_dir() {
            fs::remove_dir(&there).unwrap();
            let _ = fs::rename(aside, there);
        }
    }

    fn places(&self) -> [std::path::PathBuf; 2] {
        [waits_key(INSTANCE), "aside".to_owned()].map(|key| self.folder.path().join(key))
    }

    fn happens(&self, event: &Event) {
        const ROLES: [&str; 3] = ["etcd-main", "dns", "addons"];
        match event {
            Event::Nothing => {}
            Event::Stands(role, why) => {
                let (role, why) = (ROLES[usize::from(*role)], format!("why {why}"));
                self.standing.set_wait(role, "", Status::Failed, &why);
            }
            Event::Over(role) => self.standing.clear_wait(ROLES[usize::from(*role)], ""),
            Event::Breaks => self.breaks(),
            Event::IsMended => self.is_mended(),
        }
    }

    async fn written(&self) -> Option<Waits> {
        let bytes = self.store.get(&waits_key(INSTANCE)).await.unwrap()?.bytes;
        Some(read_waits(&bytes, INSTANCE).unwrap())
    }

    /// Role, message and since when, in seconds.
    async fn told(&self) -> Vec<(String, String, i64)> {
        let seconds = |wait: &Wait| {
            let format = &time::format_description::well_known::Rfc3339;
            let since = OffsetDateTime::parse(&wait.since, format).unwrap();
            since.unix_timestamp()
        };
        let told = |wait: Wait| (wait.role.clone(), wait.message.clone(), seconds(&wait));
        let written = self.written().await;
        written
            .into_iter()
            .flat_map(|all| all.waits)
            .map(told)
            .collect()
    }
}

/// Lets a second pass, and everybody do what is due.
async fn second() {
    NOW.set(NOW.get() + Duration::from_secs(1));
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
}

async fn seconds(count: u64) {
    for _ in 0..count {
        second().await;
    }
}

fn said(waits: &[Wait]) -> Vec<(String, String)> {
    let pair = |wait: &Wait| (wait.role.clone(), wait.message.clone());
    waits.iter().map(pair).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_store_has_what_stands_and_is_written_only_when_that_changed_and_not_often(
        events in proptest::collection::vec(event(), 0..100),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let scene = Scene::new().await;
            scene.during(async {
                let (mut writes, mut last) = (0, None::<Duration>);
                for event in &events {
                    scene.happens(event);
                    second().await;
                    let now = scene.store.writes();
                    prop_assert!(now <= writes + 1);
                    if now > writes {
                        let pause = last.map_or(EVERY, |last| NOW.get().saturating_sub(last));
                        prop_assert!(pause >= EVERY, "{pause:?}");
                        (writes, last) = (now, Some(NOW.get()));
                    }
                }
                scene.is_mended();
                seconds(SOON).await;
                let waits = scene.written().await.map(|one| one.waits).unwrap_or_default();
                prop_assert_eq!(said(&waits), said(&scene.standing.list_waits()));
                let (reads, writes) = (scene.store.reads(), scene.store.writes());
                seconds(SOON).await;
                prop_assert_eq!((scene.store.reads(), scene.store.writes()), (reads, writes));
                Ok(())
            })
            .await
        })?;
    }
}

/// A machine on which nothing goes wrong costs one read.
#[tokio::test]
async fn a_machine_where_all_is_well_writes_nothing() {
    let scene = Scene::new().await;
    scene
        .during(async {
            scene.happens(&Event::Stands(0, 0));
            seconds(5).await;
            scene.happens(&Event::Over(0));
            seconds(3600).await;
        })
        .await;
    assert_eq!((scene.store.reads(), scene.store.writes()), (1, 0));
}

#[tokio::test]
async fn how_long_a_role_has_not_been_well_outlives_other_words_and_other_protokubes() {
    let scene = Scene::new().await;
    let etcd = |why: &str, since| ("etcd-main".to_owned(), why.to_owned(), since);
    scene
        .during(async {
            seconds(100).await;
            scene.happens(&Event::Stands(0, 0));
            seconds(100).await;
            assert_eq!(scene.told().await, [etcd("why 0", 100)]);
            scene.happens(&Event::Stands(0, 1));
            seconds(100).await;
            assert_eq!(scene.told().await, [etcd("why 1", 100)]);
        })
        .await;
    let next = Scene {
        standing: Arc::new(CurrentWaits::with_clock(clock)),
        ..scene
    };
    next.during(async {
        seconds(5).await;
        next.happens(&Event::Stands(0, 2));
        seconds(95).await;
        assert_eq!(next.told().await, [etcd("why 2", 100)]);
        next.happens(&Event::Over(0));
        seconds(100).await;
        assert_eq!(next.told().await, []);
        next.happens(&Event::Stands(0, 2));
        seconds(100).await;
        assert_eq!(next.told().await, [etcd("why 2", 500)]);
    })
    .await;
}
