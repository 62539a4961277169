//! Names of Services, Ingresses and pods in the cluster's hosted zone, as kOps' dns-controller publishes them.
//!
//! objects of the API -> claims -> wanted names -> changes of names -> Route 53. A record set that protokube makes has the
//! cluster's set identifier. Route 53 tells record sets apart by it, so no change of one of them can meet a record of anybody else,
//! whatever happened since the zone was read. A TXT record beside each, as external-dns has, could be lost, forged and left over, and
//! cannot lie beside a CNAME record.

mod changes;
mod claims;
mod observe;
mod problems;
mod publish;
mod settings;
mod wanted;

#[cfg(test)]
mod laws_test;

pub use observe::NamedObjects;
pub use problems::ProblemLog;
pub use publish::{ObjectNames, PublishPace, RecordSets};
pub use settings::{ObjectNamesSettings, read_settings};
