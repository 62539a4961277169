//! What every role of protokube needs, whatever it does: its log, the table of what it waits for, its pace, health checks, and objects of
//! the state store that it obeys only if kctl has signed them.

#![warn(unreachable_pub)]

pub mod current_waits;
pub mod keysets;
pub mod lock;
pub mod log;
pub mod pace;
pub mod probe;
pub mod signed_objects;
