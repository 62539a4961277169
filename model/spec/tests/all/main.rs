//! What the spec promises, from reading to what is built from it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests"
)]

mod accepted;
mod addon_values;
mod addons;
mod authentication;
mod broken_specs;
mod calico;
mod cert_manager;
mod cilium;
mod cluster_autoscaler;
mod components;
mod create;
mod described;
mod dns_controller;
mod expand;
mod external_dns;
mod fields;
mod fuzz;
mod host;
mod ipv6;
mod kops;
mod limits;
mod load_balancer_controller;
mod metrics_server;
mod network_plugins;
mod node_config;
mod node_local_dns;
mod node_problem_detector;
mod not_yet;
mod pki;
mod pod_identity_webhook;
mod rotation;
mod round_trip;
mod runtimes;
mod snapshot_controller;
mod user_data;
mod values;
