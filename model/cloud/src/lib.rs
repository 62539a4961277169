//! Every kind of AWS object that a cluster consists of, as plain data. Field names are AWS' own in
//! snake_case; a kind's name is Terraform's type without `aws_`. Desired and observed state share these types.

mod autoscaling;
mod dns;
mod ebs_volume;
mod egress_only_internet_gateway;
mod events;
pub mod facts;
pub mod given_addresses;
mod iam;
mod key_pair;
mod kind;
pub mod ownership;
pub mod used_load_balancers;
#[macro_use]
mod kinds;
mod launch_template;
mod listing;
mod load_balancer;
mod mixed_instances;
mod nat;
pub mod own_tags;
pub mod reach;
pub mod render;
mod route;
mod s3_object;
mod security_group;
pub mod settle;
mod subnet;
mod subnet_ipv6_range;
pub mod supported_image;
mod vpc;
mod vpc_endpoint;

pub use autoscaling::{
    AutoscalingGroup, AutoscalingLifecycleHook, AutoscalingWarmPool, GroupTag, LaunchTemplateRef,
};
pub use dns::{AliasTarget, Route53Record, Route53ZoneAssociation};
pub use ebs_volume::{ETCD_TAG, EbsVolume};
pub use egress_only_internet_gateway::EgressOnlyInternetGateway;
pub use events::{CloudwatchEventRule, CloudwatchEventTarget, SqsQueue};
pub use iam::{
    IamInstanceProfile, IamOpenidConnectProvider, IamRole, IamRolePolicy, IamRolePolicyAttachment,
};
pub use key_pair::KeyPair;
pub use kind::{AttrLookup, Kind, Rename, Variant};
pub use launch_template::{
    BlockDevice, Ebs, LaunchTemplate, MarketOptions, MetadataOptions, NetworkInterface,
    canonical_price,
};
pub use listing::{ListingPosition, PartOf, Section};
pub use load_balancer::{AccessLogs, HealthCheck, Lb, LbListener, LbTargetGroup, SubnetMapping};
pub use mixed_instances::{
    AmountRange, InstanceRequirements, InstancesDistribution, LOWEST_PRICE, LaunchOverride,
    MixedInstancesPolicy,
};
pub use nat::{Eip, NatGateway};
pub use own_tags::OwnTags;
pub use route::{Route, RouteTable, RouteTableAssociation, RouteTarget};
pub use s3_object::{DiscoveryDocument, HiddenText, ObjectContent, S3Object};
pub use security_group::{RuleSource, SecurityGroup, SecurityGroupRule};
pub use subnet::Subnet;
pub use subnet_ipv6_range::{AMAZON_PREFIX, SubnetIpv6Range};
pub use vpc::{
    InternetGateway, Vpc, VpcDhcpOptions, VpcDhcpOptionsAssociation, VpcIpv4CidrBlockAssociation,
};
pub use vpc_endpoint::VpcEndpoint;

pub use node::names::Tags;

/// Calls a macro with the names of all kinds, in alphabetical order, and what it is given besides:
/// `for_each_kind!(show, 1, 2)` is `show!(@kinds [AutoscalingGroup ...] 1, 2)`.
#[macro_export]
macro_rules! for_each_kind {
    ($($call:tt)::+ $(, $($more:tt)*)?) => {
        $($call)::+! { @kinds [
            AutoscalingGroup
            AutoscalingLifecycleHook
            AutoscalingWarmPool
            CloudwatchEventRule
            CloudwatchEventTarget
            DiscoveryDocument
            EbsVolume
            EgressOnlyInternetGateway
            Eip
            IamInstanceProfile
            IamOpenidConnectProvider
            IamRole
            IamRolePolicy
            IamRolePolicyAttachment
            InternetGateway
            KeyPair
            LaunchTemplate
            Lb
            LbListener
            LbTargetGroup
            NatGateway
            Route
            Route53Record
            Route53ZoneAssociation
            RouteTable
            RouteTableAssociation
            S3Object
            SecurityGroup
            SecurityGroupRule
            SqsQueue
            Subnet
            Vpc
            VpcDhcpOptions
            VpcDhcpOptionsAssociation
            VpcEndpoint
            VpcIpv4CidrBlockAssociation
        ] $($($more)*)? }
    };
}

for_each_kind!(define_cloud);
