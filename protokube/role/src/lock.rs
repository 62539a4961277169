//! Locks a mutex even if another thread panicked while it held the lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex. A poisoned one is used anyway: what the mutexes of protokube protect is never half changed.
pub fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
