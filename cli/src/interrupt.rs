//! Ctrl-C and SIGTERM. During an apply, the first one lets running steps end and starts no more, the second one ends the
//! process. Before an apply, the first one ends the process.

use std::cell::Cell;
use std::future::pending;
use tokio::signal::unix::{SignalKind, signal};

/// The state of signal handling.
#[derive(Debug, Default)]
pub struct Interrupts {
    applying: Cell<bool>,
    stop: Cell<bool>,
}

impl Interrupts {
    /// Marks the start of an apply: from now on the first signal lets running steps end.
    pub fn start_applying(&self) {
        self.applying.set(true);
    }

    /// True once no new step may start.
    pub fn is_stopping(&self) -> bool {
        self.stop.get()
    }

    /// Returns when the process must end. Calls `first` at the first signal during an apply.
    pub async fn wait_to_leave(&self, first: impl Fn()) {
        let (Ok(mut interrupts), Ok(mut terminations)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) else {
            // Without handlers the system ends the process.
            return pending().await;
        };
        loop {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terminations.recv() => {}
            }
            if !self.applying.get() || self.stop.replace(true) {
                return;
            }
            first();
        }
    }
}
