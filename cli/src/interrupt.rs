//! Ctrl-C and SIGTERM: the first lets what is under way end and starts nothing more, the second leaves at once.
//! Before anything is under way the first one leaves at once too.

use std::cell::Cell;
use std::future::pending;
use tokio::signal::unix::{SignalKind, signal};

/// What signals have asked for.
#[derive(Debug, Default)]
pub struct Interrupts {
    applying: Cell<bool>,
    stop: Cell<bool>,
}

impl Interrupts {
    /// From now on there is something that should come to an orderly end.
    pub fn applying(&self) {
        self.applying.set(true);
    }

    /// True once nothing new may start.
    pub fn stopping(&self) -> bool {
        self.stop.get()
    }

    /// Ends when the process should; `first` is called when it should come to an end.
    pub async fn leave(&self, first: impl Fn()) {
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
