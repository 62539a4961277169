//! The lab: what the AWS simulator launches boots for real, on one Linux machine. See docs/lab.md.

pub mod aws_state;
pub mod cgroup;
pub mod checkout;
pub mod conformance;
pub mod content;
pub mod daemon;
pub mod host;
pub mod json_file;
pub mod lab_paths;
pub mod ledger;
pub mod mounts;
pub mod netns;
pub mod network;
pub mod operator;
pub mod process;
pub mod report;
pub mod scenario;
pub mod services;
pub mod teardown;
pub mod tool;
