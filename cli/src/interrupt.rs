//! Ctrl-C, SIGTERM, and SIGHUP of a terminal that closes. During an apply, the first one lets running steps end and starts no more, the
//! second one ends the process. Before an apply, the first one ends the process.

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
        let mut hangups = match ignores_hangups() {
            true => None,
            false => signal(SignalKind::hangup()).ok(),
        };
        loop {
            let is_hangup = tokio::select! {
                _ = interrupts.recv() => false,
                _ = terminations.recv() => false,
                Some(()) = async { hangups.as_mut()?.recv().await } => true,
            };
            // Of a terminal that closes, the shell and the system send one each.
            if is_hangup && self.is_stopping() {
                continue;
            }
            if !self.applying.get() || self.stop.replace(true) {
                return;
            }
            first();
        }
    }
}

/// True if kctl is to outlive its terminal, as with `nohup`: a handler would take that away. True also where the system does not say.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signals are bits, and SIGHUP is the first one.
    ignored.is_none_or(|mask| mask & 1 == 1)
}
