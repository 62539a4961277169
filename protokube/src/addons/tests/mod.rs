//! Tests of the reconciler with a fake API server and a store in a folder.

mod applying;
mod failing;
mod fixture;
mod recording;
mod removing;
mod server;
#[path = "../../../tests/support/store.rs"]
mod store;
