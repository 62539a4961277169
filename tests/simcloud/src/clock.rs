//! Virtual time: it passes only while every task sleeps, so an hour of waiting costs nothing.

use engine::Clock;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The clock of one simulation.
#[derive(Default)]
pub struct SimClock {
    now: Cell<Duration>,
    sleepers: RefCell<Vec<(Duration, Waker)>>,
}

impl SimClock {
    /// Lets time pass, with nobody running.
    pub fn pass_time(&self, time: Duration) {
        self.now.set(self.now.get() + time);
        self.sleepers.borrow_mut().clear();
    }

    /// Goes to when the first sleeper is due and wakes all that are due then. False if nobody sleeps.
    fn wake_next(&self) -> bool {
        let Some(next) = self.sleepers.borrow().iter().map(|(due, _)| *due).min() else {
            return false;
        };
        self.now.set(next.max(self.now.get()));
        let now = self.now.get();
        self.sleepers.borrow_mut().retain(|(due, waker)| {
            if *due <= now {
                waker.wake_by_ref();
            }
            *due > now
        });
        true
    }
}

impl Clock for SimClock {
    fn now(&self) -> Duration {
        self.now.get()
    }

    async fn sleep(&self, duration: Duration) {
        let due = self.now.get() + duration;
        poll_fn(|context| {
            if self.now.get() >= due {
                return Poll::Ready(());
            }
            let waker = context.waker().clone();
            self.sleepers.borrow_mut().push((due, waker));
            Poll::Pending
        })
        .await;
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the future to its end, or drops it as soon as `dead` says so, as `kill -9` does.
///
/// # Panics
///
/// If everything waits and nothing sleeps: the future would never end.
pub fn block_on<T>(
    clock: &SimClock,
    dead: impl Fn() -> bool,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&flag));
    let mut context = Context::from_waker(&waker);
    loop {
        if flag.0.swap(false, Ordering::Relaxed) {
            if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
                return Some(done);
            }
            if dead() {
                return None;
            }
        } else {
            assert!(clock.wake_next(), "everything waits and nothing sleeps");
        }
    }
}
