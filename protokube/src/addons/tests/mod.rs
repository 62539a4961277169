//! Tests of the reconciler with a fake API server and a store in a folder.

mod applying;
mod failing;
mod fixture;
mod recording;
mod removing;
mod server;
mod signatures;
#[path = "../../../tests/support/signer.rs"]
mod signer;
#[path = "../../../tests/support/store.rs"]
mod store;
