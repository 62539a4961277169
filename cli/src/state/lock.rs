//! `lock`: one kctl at a time changes a cluster. The holder renews it at a third of its life. Whether a lock is
//! still alive is told without comparing clocks: who wants it watches it for a whole life, and takes it over, by
//! its version, only if nobody renewed it in that time.

use super::{Keys, store_error};
use crate::env;
use crate::error::{CommandError, Context, Kind};
use aws::store::{Expect, Store, StoreError, Version};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

/// A lock that was not renewed for so long is nobody's.
const LIFE: Duration = Duration::from_secs(30);

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// `user@host`.
    pub who: String,
    host: String,
    process: u32,
    /// The command, without its options.
    pub what: String,
    /// Counts renewals, so that each has another version.
    renewed: u64,
}

impl Holder {
    /// This process.
    pub fn this(what: &str) -> Self {
        let host = hostname();
        let user = env::value(env::USER).unwrap_or_else(|| "somebody".to_owned());
        Self {
            who: format!("{user}@{host}"),
            host,
            process: std::process::id(),
            what: what.to_owned(),
            renewed: 0,
        }
    }

    /// True if it is known to have ended: a process of this machine that is no more.
    fn is_gone(&self) -> bool {
        self.host == hostname()
            && Path::new("/proc/self").exists()
            && !Path::new(&format!("/proc/{}", self.process)).exists()
    }
}

/// This machine's name, for people.
pub fn hostname() -> String {
    let name = std::fs::read_to_string("/etc/hostname")
        .or_else(|_| std::fs::read_to_string("/proc/sys/kernel/hostname"));
    name.map_or_else(|_| "a machine".to_owned(), |name| name.trim().to_owned())
}

/// A lock that is held.
#[derive(Debug)]
pub struct Lock<'a> {
    store: &'a Store,
    key: String,
    holder: RefCell<Holder>,
    version: RefCell<Version>,
    lost: Cell<bool>,
}

impl<'a> Lock<'a> {
    /// Takes the lock; `waits` hears who has it while this watches whether they are alive.
    pub async fn take(
        store: &'a Store,
        keys: &Keys,
        what: &str,
        waits: impl Fn(&str),
    ) -> Result<Self, CommandError> {
        Self::take_after(store, keys, what, waits, LIFE).await
    }

    async fn take_after(
        store: &'a Store,
        keys: &Keys,
        what: &str,
        waits: impl Fn(&str),
        life: Duration,
    ) -> Result<Self, CommandError> {
        let (key, holder) = (keys.lock(), Holder::this(what));
        let version = match put(store, &key, &holder, Expect::Absent).await {
            Err(error) if error.kind == Kind::Precondition => {
                let dead = abandoned(store, &key, waits, life).await?;
                put(
                    store,
                    &key,
                    &holder,
                    dead.map_or(Expect::Absent, Expect::Version),
                )
                .await?
            }
            other => other?,
        };
        Ok(Self {
            store,
            key,
            holder: RefCell::new(holder),
            version: RefCell::new(version),
            lost: Cell::new(false),
        })
    }

    /// Renews it until it is lost; to be dropped with what it guards.
    pub async fn keep(&self) {
        loop {
            tokio::time::sleep(LIFE / 3).await;
            let mut holder = self.holder.borrow().clone();
            holder.renewed += 1;
            let expect = Expect::Version(self.version.borrow().clone());
            match put(self.store, &self.key, &holder, expect).await {
                Ok(version) => {
                    self.version.replace(version);
                    self.holder.replace(holder);
                }
                Err(error) => {
                    tracing::debug!(?error, "could not renew the lock");
                    self.lost.set(true);
                    return;
                }
            }
        }
    }

    /// True once it could not be renewed: nothing new may start.
    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Gives it back. If that fails it ends by itself.
    pub async fn release(self) {
        let expect = Expect::Version(self.version.into_inner());
        if let Err(error) = self.store.delete(&self.key, expect).await {
            tracing::debug!(%error, "could not release the lock");
        }
    }
}

/// The version of a lock that nobody renews; `None` if it is gone by now. Fails if it is alive.
async fn abandoned(
    store: &Store,
    key: &str,
    waits: impl Fn(&str),
    life: Duration,
) -> Result<Option<Version>, CommandError> {
    let Some(first) = store.get(key).await.map_err(store_error)? else {
        return Ok(None);
    };
    let holder: Option<Holder> = serde_json::from_slice(&first.bytes).ok();
    let who = holder.as_ref().map_or("somebody".to_owned(), |holder| {
        format!("{} ({})", holder.who, holder.what)
    });
    if holder.is_some_and(|holder| holder.is_gone()) {
        return Ok(Some(first.version));
    }
    waits(&who);
    let step = (life / 10).max(Duration::from_millis(1));
    let mut watched = Duration::ZERO;
    while watched < life {
        tokio::time::sleep(step).await;
        watched += step;
        match store.get(key).await.map_err(store_error)? {
            None => return Ok(None),
            Some(now) if now.version == first.version => {}
            Some(_) => {
                return Err(CommandError::said(
                    Kind::Precondition,
                    format!("the cluster is being changed by {who}"),
                    "wait until that is done, and repeat the command",
                ));
            }
        }
    }
    Ok(Some(first.version))
}

async fn put(
    store: &Store,
    key: &str,
    holder: &Holder,
    expect: Expect,
) -> Result<Version, CommandError> {
    let bytes = serde_json::to_vec(holder).failed(
        "the lock has no JSON form",
        "report this: it is a defect of kctl",
    )?;
    store
        .put(key, bytes, expect)
        .await
        .map_err(|error| match error {
            StoreError::Conflict { .. } => CommandError::said(
                Kind::Precondition,
                "somebody else is changing this cluster",
                "wait until that is done, and repeat the command",
            ),
            other => store_error(other),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws::Clients;

    const SHORT: Duration = Duration::from_millis(50);

    async fn store(dir: &Path) -> Store {
        Store::open(
            &format!("file://{}", dir.display()),
            &Clients::load(None, None).await,
        )
        .unwrap()
    }

    async fn put_foreign(store: &Store, keys: &Keys, host: &str) {
        let holder = Holder {
            host: host.to_owned(),
            process: u32::MAX,
            ..Holder::this("update")
        };
        put(store, &keys.lock(), &holder, Expect::Any)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let (store, keys) = (store(dir.path()).await, Keys::of("demo.example.com"));
        let lock = Lock::take(&store, &keys, "update", |_| {}).await.unwrap();
        let renew = async {
            tokio::time::sleep(SHORT / 2).await;
            let mut holder = lock.holder.borrow().clone();
            holder.renewed += 1;
            let version = put(&store, &lock.key, &holder, Expect::Any).await.unwrap();
            lock.version.replace(version);
        };
        let (second, ()) = tokio::join!(
            Lock::take_after(&store, &keys, "update", |_| {}, SHORT),
            renew
        );
        assert_eq!(
            second.err().map(|error| error.kind),
            Some(Kind::Precondition)
        );
        lock.release().await;
        Lock::take(&store, &keys, "update", |_| {}).await.unwrap();
    }

    #[tokio::test]
    async fn what_nobody_renews_is_taken_over_and_what_is_known_to_be_dead_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let (store, keys) = (store(dir.path()).await, Keys::of("demo.example.com"));
        put_foreign(&store, &keys, "elsewhere").await;
        Lock::take_after(&store, &keys, "update", |_| {}, SHORT)
            .await
            .unwrap();
        put_foreign(&store, &keys, &hostname()).await;
        let patient = Duration::from_hours(1);
        Lock::take_after(&store, &keys, "update", |_| {}, patient)
            .await
            .unwrap();
    }
}
