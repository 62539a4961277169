//! The follower against an API server on loopback and a store in a folder.

mod applying;
mod failing;
mod recording;
mod removing;
mod scene;
mod server;
#[path = "../../../tests/support/store.rs"]
mod store;
