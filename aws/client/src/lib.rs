//! AWS as kctl and the agents reach it: clients with one set of rules, failures by class, the fence, who the caller is, the state
//! store, and what agents ask of EC2, STS and Route 53. The EC2 client and the kinds of objects are in `aws-cloud`.

mod attempts;
pub mod authorities;
mod causes;
mod clients;
#[cfg(feature = "route53")]
pub mod dns;
#[cfg(feature = "ec2-query")]
pub mod ec2_query;
pub mod failure;
pub mod fence;
pub mod fips;
mod identity;
#[cfg(feature = "signed-calls")]
mod json_answer;
pub mod packed;
#[cfg(feature = "route53")]
pub mod record_sets;
#[cfg(test)]
mod s3_test;
#[cfg(feature = "signed-calls")]
pub mod service_quotas;
#[cfg(feature = "signed-calls")]
mod signed_call;
pub mod store;

pub use attempts::{Attempts, RetryNotice};
pub use clients::{AccessKey, AccessOptions, Clients};
pub use identity::{Identity, Imds, caller_identity};
