//! The API of a cluster, asked as its administrator: where it answers, with what certificate, and what is wrong when it
//! does not.

mod administrator;
mod ask;
mod server;
mod trouble;

pub use administrator::{Administrator, administrator};
pub use ask::{Answer, Question, ask, client};
pub use server::{Server, WrongAddress, server, server_at};
pub use trouble::{Reason, Trouble};
