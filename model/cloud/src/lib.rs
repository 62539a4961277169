//! Every kind of AWS object that a cluster consists of, as plain data. Field names are AWS' own in
//! snake_case; a kind's name is Terraform's type without `aws_`. Desired and observed state share these types.

mod autoscaling;
pub mod claim;
mod dns;
mod ebs_volume;
mod events;
pub mod facts;
pub mod held;
mod iam;
mod key_pair;
mod launch_template;
mod load_balancer;
pub mod machine_image;
mod nat;
pub mod own_tags;
pub mod render;
mod route;
mod s3_object;
mod security_group;
pub mod settle;
mod subnet;
mod vpc;

pub use autoscaling::{AutoscalingGroup, AutoscalingLifecycleHook, GroupTag, LaunchTemplateRef};
pub use dns::{AliasTarget, Route53Record, Route53ZoneAssociation};
pub use ebs_volume::EbsVolume;
pub use events::{CloudwatchEventRule, CloudwatchEventTarget, SqsQueue};
pub use iam::{IamInstanceProfile, IamRole, IamRolePolicy, IamRolePolicyAttachment};
pub use key_pair::KeyPair;
pub use launch_template::{
    BlockDevice, Ebs, LaunchTemplate, MarketOptions, MetadataOptions, NetworkInterface,
};
pub use load_balancer::{AccessLogs, HealthCheck, Lb, LbListener, LbTargetGroup, SubnetMapping};
pub use nat::{Eip, NatGateway};
pub use own_tags::OwnTags;
pub use route::{Route, RouteTable, RouteTableAssociation, RouteTarget};
pub use s3_object::{ObjectContent, S3Object};
pub use security_group::{RuleSource, SecurityGroup, SecurityGroupRule};
pub use subnet::Subnet;
pub use vpc::{
    DhcpOptions, DhcpOptionsAssociation, InternetGateway, Vpc, VpcIpv4CidrBlockAssociation,
};

pub use node::names::Tags;

use engine::{Id, Part, Ref, Resource, Text};
use serde::{Deserialize, Serialize};

/// Looks up an attribute of another resource: `(id, attribute) -> value`, if known by now.
pub type AttrLookup<'a> = &'a dyn Fn(&Id, &str) -> Option<String>;

/// Gives a reference its new name, or back as it is.
pub type Rename<'a> = &'a dyn Fn(&Ref) -> Ref;

/// What every kind says about itself.
pub trait Kind: Clone + std::fmt::Debug + PartialEq + Serialize {
    /// Terraform's type without `aws_`.
    const TYPE: &'static str;

    /// A create of it that dies half-way could be duplicated (see [`Resource::needs_journal`]).
    const JOURNALED: bool = false;

    /// Its logical name, unique within the cluster and kind.
    fn name(&self) -> String;

    /// References it holds.
    fn refs(&self) -> Vec<Ref>;

    /// Itself with every reference renamed, late values included. Kinds that refer to nothing leave it as it is.
    #[must_use]
    fn with_refs(&self, _rename: Rename<'_>) -> Self {
        self.clone()
    }

    /// Resources whose late attributes it waits for.
    fn late(&self) -> Vec<Id> {
        Vec::new()
    }

    /// See [`Resource::refuses`].
    fn refuses(&self, _have: &Self) -> Option<String> {
        None
    }

    /// See [`Resource::accepting`].
    #[must_use]
    fn accepting(&self, _have: &Self) -> Self {
        self.clone()
    }

    /// See [`Resource::attr_changes`].
    fn attr_changes(&self, _have: &Self, _attribute: &str) -> bool {
        false
    }

    /// See [`Resource::resolved`].
    #[must_use]
    fn resolved(&self, _attr: AttrLookup<'_>) -> Self {
        self.clone()
    }

    /// Its id.
    fn id(&self) -> Id {
        Id::new(Self::TYPE, self.name())
    }
}

/// Any AWS object of a cluster. Serialized with its kind under `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is documented at its type")]
pub enum Cloud {
    AutoscalingGroup(AutoscalingGroup),
    AutoscalingLifecycleHook(AutoscalingLifecycleHook),
    CloudwatchEventRule(CloudwatchEventRule),
    CloudwatchEventTarget(CloudwatchEventTarget),
    EbsVolume(EbsVolume),
    Eip(Eip),
    IamInstanceProfile(IamInstanceProfile),
    IamRole(IamRole),
    IamRolePolicy(IamRolePolicy),
    IamRolePolicyAttachment(IamRolePolicyAttachment),
    InternetGateway(InternetGateway),
    KeyPair(KeyPair),
    LaunchTemplate(LaunchTemplate),
    Lb(Lb),
    LbListener(LbListener),
    LbTargetGroup(LbTargetGroup),
    NatGateway(NatGateway),
    Route(Route),
    Route53Record(Route53Record),
    Route53ZoneAssociation(Route53ZoneAssociation),
    RouteTable(RouteTable),
    RouteTableAssociation(RouteTableAssociation),
    S3Object(S3Object),
    SecurityGroup(SecurityGroup),
    SecurityGroupRule(SecurityGroupRule),
    SqsQueue(SqsQueue),
    Subnet(Subnet),
    Vpc(Vpc),
    VpcDhcpOptions(DhcpOptions),
    VpcDhcpOptionsAssociation(DhcpOptionsAssociation),
    VpcIpv4CidrBlockAssociation(VpcIpv4CidrBlockAssociation),
}

/// Calls the same thing on whichever kind it is; saves writing thirty arms five times.
macro_rules! each {
    ($on:expr, $kind:ident => $do:expr) => {
        match $on {
            Cloud::AutoscalingGroup($kind) => $do,
            Cloud::AutoscalingLifecycleHook($kind) => $do,
            Cloud::CloudwatchEventRule($kind) => $do,
            Cloud::CloudwatchEventTarget($kind) => $do,
            Cloud::EbsVolume($kind) => $do,
            Cloud::Eip($kind) => $do,
            Cloud::IamInstanceProfile($kind) => $do,
            Cloud::IamRole($kind) => $do,
            Cloud::IamRolePolicy($kind) => $do,
            Cloud::IamRolePolicyAttachment($kind) => $do,
            Cloud::InternetGateway($kind) => $do,
            Cloud::KeyPair($kind) => $do,
            Cloud::LaunchTemplate($kind) => $do,
            Cloud::Lb($kind) => $do,
            Cloud::LbListener($kind) => $do,
            Cloud::LbTargetGroup($kind) => $do,
            Cloud::NatGateway($kind) => $do,
            Cloud::Route($kind) => $do,
            Cloud::Route53Record($kind) => $do,
            Cloud::Route53ZoneAssociation($kind) => $do,
            Cloud::RouteTable($kind) => $do,
            Cloud::RouteTableAssociation($kind) => $do,
            Cloud::S3Object($kind) => $do,
            Cloud::SecurityGroup($kind) => $do,
            Cloud::SecurityGroupRule($kind) => $do,
            Cloud::SqsQueue($kind) => $do,
            Cloud::Subnet($kind) => $do,
            Cloud::Vpc($kind) => $do,
            Cloud::VpcDhcpOptions($kind) => $do,
            Cloud::VpcDhcpOptionsAssociation($kind) => $do,
            Cloud::VpcIpv4CidrBlockAssociation($kind) => $do,
        }
    };
}

impl Cloud {
    /// Itself with every reference renamed, late values included.
    #[must_use]
    pub fn with_refs(&self, rename: Rename<'_>) -> Self {
        each!(self, kind => kind.with_refs(rename).into())
    }
}

/// References renamed, in the order of sets.
fn renamed_set(refs: &[Ref], rename: Rename<'_>) -> Vec<Ref> {
    let mut renamed: Vec<Ref> = refs.iter().map(rename).collect();
    renamed.sort();
    renamed
}

/// Text whose late values follow their resources' new names.
fn renamed_text(text: &Text, rename: Rename<'_>) -> Text {
    Text::of(text.parts().iter().map(|part| match part {
        Part::Literal(_) => part.clone(),
        Part::Late {
            kind,
            name,
            attribute,
        } => match rename(&Ref::own(&Id::new(kind, name.clone()))) {
            Ref::Own { kind, name } => Part::Late {
                kind,
                name,
                attribute: attribute.clone(),
            },
            Ref::Given(_) => part.clone(),
        },
    }))
}

fn same_kind<K: Kind, T>(_: &K, other: &Cloud, compare: impl Fn(&K) -> Option<T>) -> Option<T>
where
    for<'a> Option<&'a K>: From<Downcast<'a>>,
{
    Option::<&K>::from(Downcast(other)).and_then(compare)
}

/// A borrowed object on its way to its own kind.
pub struct Downcast<'a>(&'a Cloud);

/// `Cloud::from(kind)`, and back by reference.
macro_rules! convert {
    ($($variant:ident($kind:ty)),* $(,)?) => { $(
        impl From<$kind> for Cloud {
            fn from(kind: $kind) -> Self {
                Self::$variant(kind)
            }
        }
        impl<'a> From<Downcast<'a>> for Option<&'a $kind> {
            fn from(of: Downcast<'a>) -> Self {
                match of.0 {
                    Cloud::$variant(kind) => Some(kind),
                    _ => None,
                }
            }
        }
    )* };
}

convert!(
    AutoscalingGroup(AutoscalingGroup),
    AutoscalingLifecycleHook(AutoscalingLifecycleHook),
    CloudwatchEventRule(CloudwatchEventRule),
    CloudwatchEventTarget(CloudwatchEventTarget),
    EbsVolume(EbsVolume),
    Eip(Eip),
    IamInstanceProfile(IamInstanceProfile),
    IamRole(IamRole),
    IamRolePolicy(IamRolePolicy),
    IamRolePolicyAttachment(IamRolePolicyAttachment),
    InternetGateway(InternetGateway),
    KeyPair(KeyPair),
    LaunchTemplate(LaunchTemplate),
    Lb(Lb),
    LbListener(LbListener),
    LbTargetGroup(LbTargetGroup),
    NatGateway(NatGateway),
    Route(Route),
    Route53Record(Route53Record),
    Route53ZoneAssociation(Route53ZoneAssociation),
    RouteTable(RouteTable),
    RouteTableAssociation(RouteTableAssociation),
    S3Object(S3Object),
    SecurityGroup(SecurityGroup),
    SecurityGroupRule(SecurityGroupRule),
    SqsQueue(SqsQueue),
    Subnet(Subnet),
    Vpc(Vpc),
    VpcDhcpOptions(DhcpOptions),
    VpcDhcpOptionsAssociation(DhcpOptionsAssociation),
    VpcIpv4CidrBlockAssociation(VpcIpv4CidrBlockAssociation),
);

impl Resource for Cloud {
    fn id(&self) -> Id {
        each!(self, kind => kind.id())
    }

    fn needs(&self) -> Vec<Id> {
        let mut needs: Vec<Id> = each!(self, kind => kind.refs().iter().filter_map(Ref::id).chain(kind.late()).collect());
        needs.sort();
        needs.dedup();
        needs
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        each!(self, kind => same_kind(kind, have, |have| kind.refuses(have)))
    }

    fn accepting(&self, have: &Self) -> Self {
        each!(self, kind => same_kind(kind, have, |have| Some(kind.accepting(have).into())))
            .unwrap_or_else(|| self.clone())
    }

    fn series(&self) -> Option<(String, u32)> {
        settle::place(self)
    }

    fn attr_changes(&self, have: &Self, attribute: &str) -> bool {
        each!(self, kind => same_kind(kind, have, |have| Some(kind.attr_changes(have, attribute))))
            .unwrap_or(true)
    }

    fn can_be_remade(&self) -> bool {
        !matches!(
            self,
            Self::AutoscalingGroup(_) | Self::EbsVolume(_) | Self::S3Object(_) | Self::SqsQueue(_)
        )
    }

    fn holds_data(&self) -> bool {
        matches!(self, Self::EbsVolume(_))
    }

    fn resolved(&self, attr: AttrLookup<'_>) -> Self {
        each!(self, kind => kind.resolved(attr).into())
    }

    fn needs_journal(&self) -> bool {
        fn journaled<K: Kind>(_: &K) -> bool {
            K::JOURNALED
        }
        each!(self, kind => journaled(kind))
    }
}
