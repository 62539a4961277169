//! Launch templates: what an instance group's instances are launched as. A change is a new version.

use super::listing::{ListingPosition, Section};
use super::{Kind, Tags};
use engine::{Ref, Text};
use serde::{Deserialize, Serialize};

/// An instance group's launch template, at its latest version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchTemplate {
    /// Same name as the Auto Scaling group.
    pub launch_template_name: String,
    /// Root volume first, then instance store, then `spec.volumes`.
    pub block_device_mappings: Vec<BlockDevice>,
    /// `standard` or `unlimited`, burstable types only.
    pub credit_specification: Option<String>,
    pub iam_instance_profile: Ref,
    pub image_id: String,
    /// The first instance type of the group.
    pub instance_type: String,
    pub instance_market_options: Option<MarketOptions>,
    /// The SSH key pair.
    pub key_name: Option<Ref>,
    /// The instance metadata service.
    pub metadata_options: MetadataOptions,
    pub monitoring: bool,
    /// Dedicated bandwidth to EBS; `None`: as the instance type has it.
    pub ebs_optimized: Option<bool>,
    /// The one network interface.
    pub network_interface: NetworkInterface,
    /// `default`, `dedicated` or `host`.
    pub tenancy: Option<String>,
    /// Tags of the template itself and of every instance, volume and network interface launched from it.
    pub tags: Tags,
    /// User data as text, not base64.
    pub user_data: Option<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// `/dev/xvda`.
    pub device_name: String,
    /// An EBS volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<Ebs>,
    /// Instance store: `ephemeral0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_name: Option<String>,
}

/// An EBS volume made at launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ebs {
    /// Goes with the instance.
    pub delete_on_termination: bool,
    /// Encrypted at rest; `None`: as the account's default says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i32>,
    /// KMS key ARN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i32>,
    /// GiB.
    pub volume_size: i32,
    /// `gp3`.
    pub volume_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketOptions {
    /// Highest price an hour in US dollars, in the form of [`canonical_price`].
    pub max_price: String,
    /// `hibernate`, `stop` or `terminate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_interruption_behavior: Option<String>,
}

/// A price without zeros that say nothing: AWS may describe `0.05` as `0.050000`, which is no other price. What is no number stays.
pub fn canonical_price(text: &str) -> String {
    let number = text.parse::<f64>().ok().filter(|price| price.is_finite());
    number.map_or_else(|| text.to_owned(), |price| price.to_string())
}

/// Instance metadata service options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataOptions {
    /// Always `enabled`.
    pub http_endpoint: String,
    /// `disabled`, or `enabled` with IPv6.
    pub http_protocol_ipv6: String,
    /// Hops a reply may travel.
    pub http_put_response_hop_limit: i32,
    /// `required`: IMDSv2 only.
    pub http_tokens: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkInterface {
    pub associate_public_ip_address: bool,
    /// Goes with the instance.
    pub delete_on_termination: bool,
    /// IPv6 addresses.
    pub ipv6_address_count: i32,
    /// Security groups, sorted.
    pub groups: Vec<Ref>,
}

impl Kind for LaunchTemplate {
    const TYPE: &'static str = "launch_template";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Instances, 1);

    fn name(&self) -> String {
        self.launch_template_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        let profile = std::iter::once(&mut self.iam_instance_profile);
        let groups = self.network_interface.groups.iter_mut();
        profile.chain(&mut self.key_name).chain(groups).collect()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    fn attr_changes(&self, _have: &Self, attribute: &str) -> bool {
        attribute == "latest_version"
    }

    fn texts_mut(&mut self) -> Vec<&mut Text> {
        self.user_data.iter_mut().collect()
    }

    fn refs_changed(&mut self) {
        self.network_interface.groups.sort();
    }

    fn describe(&self) -> String {
        format!("{} {}", self.instance_type, self.image_id)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_price_is_the_same_however_it_is_written() {
        for text in ["0.05", "0.050000", ".05", "00.05", "+0.05"] {
            assert_eq!(super::canonical_price(text), "0.05", "{text}");
        }
        assert_eq!(super::canonical_price("1"), super::canonical_price("1.00"));
        assert_ne!(
            super::canonical_price("0.05"),
            super::canonical_price("0.051")
        );
        assert_eq!(super::canonical_price("cheap"), "cheap");
    }
}
