//! The API of a cluster, asked as its administrator: where it answers, with what certificate, and why it cannot be
//! asked.

mod administrator;
mod ask;
mod error;
mod server;

pub use administrator::{Administrator, administrator};
pub use ask::{Answer, Question, ask, client};
pub use error::not_made;
pub use server::{Server, WrongAddress, server, server_at};
