//! The rules about the instances of a running cluster: which of them are nodes, which are out of date and why, how far a
//! boot came, what a control plane waits for, and whether the cluster is healthy. Plain data and pure functions; the
//! current time is an argument.

mod addon;
mod api_error;
mod boot_stage;
mod cis;
mod deprecated_apis;
mod group;
mod health;
mod helm_chart;
mod instance;
mod instance_json;
mod instance_status;
mod join;
mod keys;
mod membership;
mod node;
mod observed;
mod scaling_group;
mod up_to_date;
mod wait;

pub use addon::{AddonObject, AddonState, AddonStatus, judge_addon};
pub use api_error::{ApiError, ApiErrorReason};
pub use boot_stage::{BootSource, BootStage, latest_boot_stage};
pub use cis::{
    CIS_BENCHMARK, CisNode, CisObserved, CisResult, CisRow, NodeFiles, PodAdmission, judge_cis,
};
pub use deprecated_apis::{DeprecatedApi, read_deprecated_apis};
pub use group::{Group, role_name};
pub use health::{
    Finding, FindingKind, GroupHealth, Health, IgnoredProblem, NotIgnorable, check_health,
};
pub use helm_chart::ChartJob;
pub use instance::{Instance, TemplateVersion};
pub use instance_status::{InstanceStatus, append_holders, instance_statuses};
pub use join::{AwsFleet, join_members};
pub use keys::{KeyHolder, KeyStep, KeyUsers, find_hindrances};
pub use membership::Membership;
pub use node::Node;
pub use observed::Fleet;
pub use scaling_group::{LaunchFailure, ScalingGroup};
pub use up_to_date::{UnknownVersion, UpToDate, up_to_date};
pub use wait::{RoleWait, role_waits, unhealthy_waits};
