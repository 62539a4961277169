//! A cluster's objects in AWS: the sweep that observes them, the verbs of each kind, facts of the account, the instances of its
//! groups, what stands against a plan. Only kctl links this: it compiles the EC2 client.

mod account_use;
mod actions;
mod address_holders;
mod balancer;
mod classic_load_balancers;
mod clients;
mod console;
mod engine_world;
mod etcd_volumes;
mod facts;
pub mod fleet;
mod kinds;
mod name_servers;
mod names;
mod network_interfaces;
mod network_state;
mod object_records;
mod observe;
mod permissions;
mod scope;
mod signing;
mod world;

pub use account_use::{AccountUse, InstanceKind, account_use};
pub use actions::{PlanPlace, planned_actions};
pub use address_holders::address_holders;
pub use balancer::balancer_dns_name;
pub use classic_load_balancers::{classic_load_balancers, delete_classic_load_balancer};
pub use clients::CloudClients;
pub use console::{Console, console_output};
pub use etcd_volumes::{is_volume_deleted, volume_holder};
pub use facts::collect_facts;
pub use name_servers::zone_name_servers;
pub use network_interfaces::{delete_interface, foreign_interfaces, left_interfaces};
pub use network_state::{SubnetAddresses, network_state, subnet_addresses};
pub use object_records::{delete_object_records, object_record_names};
pub use permissions::{CallerPermissions, Denial, DeniedAction, simulate_actions};
pub use scope::{AssetSource, Scope};
pub use world::AwsWorld;
