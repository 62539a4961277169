//! Values of a spec that mean something to an instance, each with one parser: kctl refuses what it does not read, and nodeup uses
//! what it returns, so neither accepts what the other cannot do.

mod image;
mod network;
mod package;
mod path;
mod sysctl;
mod unit_name;

pub use image::{containerd_image, parse_image, parse_registry_prefix};
pub use network::{
    parse_address, parse_endpoint, parse_host, parse_host_and_port, parse_url, parse_web_url,
};
pub use package::parse_package;
pub use path::{is_inside, parse_file, parse_folder, parse_mode};
pub use sysctl::{Parameter, parse_parameters};
pub use unit_name::{UNIT_TYPES, parse_unit_name, unit_type};

/// Why a text is not such a value, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What is wrong, with the text.
    pub message: String,
    /// The next step.
    pub hint: String,
}

impl Refusal {
    /// A refusal with this message and this next step.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }
}
