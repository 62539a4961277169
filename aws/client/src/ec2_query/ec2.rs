//! EC2 as agents ask it: instances, volumes, attaching one, and ranges of IPv6 addresses.

use super::{Ec2QueryClient, answer};
use engine::Failure;
use ipnet::Ipv6Net;
use roxmltree::Node;
use std::collections::{BTreeMap, BTreeSet};

const VERSION: &str = "2016-11-15";

/// Objects on a page, as many as AWS gives: look-ups that want all in one answer are throttled sooner
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html>).
const PAGE: &str = "1000";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// `i-...`.
    pub id: String,
    /// `pending`, `running`, `shutting-down`, `terminated`, `stopping`, `stopped`.
    pub state: String,
    /// `ip-10-0-0-1.ec2.internal`.
    pub private_dns_name: String,
    /// Primary private address; none once terminated.
    pub private_ip: Option<String>,
    /// Public address, if it has one.
    pub public_ip: Option<String>,
    /// Primary IPv6 address, if it has one.
    pub ipv6_address: Option<String>,
    /// The first network interface; none once terminated.
    pub interface: Option<NetworkInterface>,
    /// `ec2-203-0-113-1.eu-west-1.compute.amazonaws.com`; empty without a public address or names in its VPC.
    pub public_dns_name: String,
    /// Every address of every interface, private and public, IPv4 and IPv6.
    pub addresses: BTreeSet<String>,
    pub zone: String,
    /// True for a spot instance.
    pub spot: bool,
    /// The name of its instance profile, if it has one.
    pub profile: Option<String>,
    pub tags: BTreeMap<String, String>,
}

/// The first network interface of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkInterface {
    /// `eni-...`.
    pub id: String,
    /// The ranges of IPv6 addresses that AWS delegated to it, each a /80, sorted.
    pub ipv6_prefixes: Vec<Ipv6Net>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// `vol-...`.
    pub id: String,
    /// `creating`, `available`, `in-use`, `deleting`, `error`.
    pub state: String,
    pub zone: String,
    /// GiB.
    pub size: u64,
    pub tags: BTreeMap<String, String>,
    /// Where it is attached, if it is.
    pub attachment: Option<Attachment>,
}

/// An attachment of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    pub instance: String,
    /// As which device was asked for: `/dev/xvdu`.
    pub device: String,
    /// `attaching`, `attached`, `detaching`, `busy`.
    pub state: String,
}

impl Ec2QueryClient {
    /// Instances that match every filter (`tag:KEY`, `instance-id`, `instance-state-name`, ...), each with the values
    /// that it may have. Terminated ones are among them for about an hour.
    pub async fn describe_instances(
        &self,
        filters: &[(&str, &[&str])],
    ) -> Result<Vec<Instance>, Failure> {
        self.describe_pages("DescribeInstances", filters, |root| {
            answer::list_items(root, "reservationSet")
                .flat_map(|reservation| answer::list_items(reservation, "instancesSet"))
                .filter_map(parse_instance)
                .collect()
        })
        .await
    }

    /// Volumes that match every filter.
    pub async fn describe_volumes(
        &self,
        filters: &[(&str, &[&str])],
    ) -> Result<Vec<Volume>, Failure> {
        self.describe_pages("DescribeVolumes", filters, |root| {
            answer::list_items(root, "volumeSet")
                .filter_map(parse_volume)
                .collect()
        })
        .await
    }

    /// The volume with that id; `None`: EC2 says that there is none. "InvalidVolume.NotFound: The volume does not exist"
    /// (<https://docs.aws.amazon.com/ec2/latest/devguide/errors-overview.html>); an answer to filters may lack what is there.
    pub async fn describe_volume(&self, id: &str) -> Result<Option<Volume>, Failure> {
        const ACTION: &str = "DescribeVolumes";
        let parameters = [("VolumeId.1".to_owned(), id.to_owned())];
        let text = match self.query("ec2", ACTION, VERSION, &parameters).await {
            Err(failure) if failure.code == "InvalidVolume.NotFound" => return Ok(None),
            answer => answer?,
        };
        let call = format!("ec2:{ACTION}");
        answer::parse_answer(&call, &text, |root| {
            answer::list_items(root, "volumeSet").find_map(parse_volume)
        })
        .map(Some)
    }

    /// Begins to attach a volume to an instance as that device.
    pub async fn attach_volume(
        &self,
        volume: &str,
        instance: &str,
        device: &str,
    ) -> Result<(), Failure> {
        let parameters = [
            ("VolumeId", volume),
            ("InstanceId", instance),
            ("Device", device),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let answer = self.query("ec2", "AttachVolume", VERSION, &parameters);
        answer.await.map(drop)
    }

    /// Delegates a range of IPv6 addresses, a /80 of its subnet, to a network interface.
    pub async fn assign_ipv6_prefix(&self, interface: &str) -> Result<Ipv6Net, Failure> {
        const ACTION: &str = "AssignIpv6Addresses";
        let parameters = [("NetworkInterfaceId", interface), ("Ipv6PrefixCount", "1")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let text = self.query("ec2", ACTION, VERSION, &parameters).await?;
        answer::parse_answer(&format!("ec2:{ACTION}"), &text, |root| {
            let mut assigned = answer::list_items(root, "assignedIpv6PrefixSet");
            assigned.find_map(|item| item.text()?.trim().parse().ok())
        })
    }

    /// All pages of a look-up.
    async fn describe_pages<T>(
        &self,
        action: &str,
        filters: &[(&str, &[&str])],
        read: impl Fn(Node<'_, '_>) -> Vec<T>,
    ) -> Result<Vec<T>, Failure> {
        let call = format!("ec2:{action}");
        let mut all = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let mut parameters = filter_parameters(filters);
            parameters.push(("MaxResults".to_owned(), PAGE.to_owned()));
            parameters.extend(token.map(|token| ("NextToken".to_owned(), token)));
            let text = self.query("ec2", action, VERSION, &parameters).await?;
            let page = answer::parse_answer(&call, &text, |root| {
                Some((read(root), answer::child_value(root, "nextToken")))
            });
            let (found, next) = page?;
            all.extend(found);
            token = next.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(all);
            }
        }
    }
}

fn filter_parameters(filters: &[(&str, &[&str])]) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    for (index, (name, values)) in (1..).zip(filters) {
        parameters.push((format!("Filter.{index}.Name"), (*name).to_owned()));
        for (place, value) in (1..).zip(*values) {
            let value: &str = value;
            parameters.push((format!("Filter.{index}.Value.{place}"), value.to_owned()));
        }
    }
    parameters
}

fn parse_instance(instance: Node<'_, '_>) -> Option<Instance> {
    let state = answer::child_element(instance, "instanceState")?;
    let placement = answer::child_element(instance, "placement")?;
    Some(Instance {
        id: answer::child_value(instance, "instanceId")?,
        state: answer::child_value(state, "name")?,
        private_dns_name: answer::child_value(instance, "privateDnsName").unwrap_or_default(),
        private_ip: answer::child_value(instance, "privateIpAddress"),
        public_ip: answer::child_value(instance, "ipAddress"),
        ipv6_address: answer::child_value(instance, "ipv6Address"),
        interface: parse_interface(instance),
        public_dns_name: answer::child_value(instance, "dnsName").unwrap_or_default(),
        addresses: parse_addresses(instance),
        zone: answer::child_value(placement, "availabilityZone")?,
        // "spot", "scheduled", "capacity-block"; absent otherwise
        // (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html>).
        spot: answer::child_value(instance, "instanceLifecycle").as_deref() == Some("spot"),
        profile: instance_profile_name(instance),
        tags: parse_tags(instance),
    })
}

/// `NAME` of `arn:aws:iam::123456789012:instance-profile/PATH/NAME`:
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IamInstanceProfile.html>.
fn instance_profile_name(of: Node<'_, '_>) -> Option<String> {
    let arn = answer::child_value(answer::child_element(of, "iamInstanceProfile")?, "arn")?;
    arn.rsplit('/').next().map(str::to_owned)
}

fn parse_interface(instance: Node<'_, '_>) -> Option<NetworkInterface> {
    let is_first = |interface: &Node<'_, '_>| {
        let attachment = answer::child_element(*interface, "attachment");
        let index = attachment.and_then(|of| answer::child_value(of, "deviceIndex"));
        index.as_deref() == Some("0")
    };
    let first = answer::list_items(instance, "networkInterfaceSet").find(is_first)?;
    let prefixes = answer::list_items(first, "ipv6PrefixSet");
    let mut ipv6_prefixes: Vec<Ipv6Net> = prefixes
        .filter_map(|item| answer::child_value(item, "ipv6Prefix")?.parse().ok())
        .collect();
    ipv6_prefixes.sort_unstable();
    Some(NetworkInterface {
        id: answer::child_value(first, "networkInterfaceId")?,
        ipv6_prefixes,
    })
}

fn parse_addresses(of: Node<'_, '_>) -> BTreeSet<String> {
    let own = ["privateIpAddress", "ipAddress", "ipv6Address"];
    let mut all: BTreeSet<String> = own
        .iter()
        .filter_map(|name| answer::child_value(of, name))
        .collect();
    for interface in answer::list_items(of, "networkInterfaceSet") {
        for private in answer::list_items(interface, "privateIpAddressesSet") {
            let public = answer::child_element(private, "association");
            all.extend(answer::child_value(private, "privateIpAddress"));
            all.extend(public.and_then(|public| answer::child_value(public, "publicIp")));
        }
        let ipv6 = answer::list_items(interface, "ipv6AddressesSet");
        all.extend(ipv6.filter_map(|item| answer::child_value(item, "ipv6Address")));
    }
    all
}

fn parse_volume(volume: Node<'_, '_>) -> Option<Volume> {
    let attachment = |item| {
        Some(Attachment {
            instance: answer::child_value(item, "instanceId")?,
            device: answer::child_value(item, "device").unwrap_or_default(),
            state: answer::child_value(item, "status").unwrap_or_default(),
        })
    };
    let mut attachments = answer::list_items(volume, "attachmentSet").filter_map(attachment);
    Some(Volume {
        id: answer::child_value(volume, "volumeId")?,
        state: answer::child_value(volume, "status")?,
        zone: answer::child_value(volume, "availabilityZone")?,
        size: answer::child_value(volume, "size")?.parse().ok()?,
        tags: parse_tags(volume),
        attachment: attachments.find(|attachment| attachment.state != "detached"),
    })
}

fn parse_tags(of: Node<'_, '_>) -> BTreeMap<String, String> {
    let pair = |item| {
        let value = answer::child_value(item, "value").unwrap_or_default();
        Some((answer::child_value(item, "key")?, value))
    };
    answer::list_items(of, "tagSet").filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_and_instances_are_read_whatever_the_namespace() {
        let text = r#"<R xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><volumeSet><item><volumeId>vol-1</volumeId><size>20</size>
            <status>in-use</status><availabilityZone>a</availabilityZone><attachmentSet><item><instanceId>i-1</instanceId>
            <device>/dev/xvdu</device><status>attached</status></item></attachmentSet><tagSet><item><key>k</key><value/></item></tagSet>
            </item></volumeSet></R>"#;
        let document = roxmltree::Document::parse(text).unwrap();
        let volumes: Vec<Volume> = answer::list_items(document.root_element(), "volumeSet")
            .filter_map(parse_volume)
            .collect();
        assert_eq!(volumes.len(), 1);
        assert_eq!(volumes[0].attachment.as_ref().unwrap().instance, "i-1");
        assert_eq!(volumes[0].tags["k"], "");
    }

    #[test]
    fn the_ranges_of_the_first_interface_are_read() {
        let interface = |index: u8, prefix: &str| {
            format!(
                "<item><networkInterfaceId>eni-{index}</networkInterfaceId><attachment><deviceIndex>{index}</deviceIndex></attachment>
                <ipv6PrefixSet><item><ipv6Prefix>{prefix}</ipv6Prefix></item></ipv6PrefixSet></item>"
            )
        };
        let text = format!(
            "<R><instanceId>i-1</instanceId><ipv6Address>2001:db8::1</ipv6Address><instanceState><name>running</name></instanceState>
            <placement><availabilityZone>a</availabilityZone></placement>
            <networkInterfaceSet>{}{}</networkInterfaceSet></R>",
            interface(1, "2001:db8:0:0:1::/80"),
            interface(0, "2001:db8:0:0:2::/80"),
        );
        let document = roxmltree::Document::parse(&text).unwrap();
        let instance = parse_instance(document.root_element()).unwrap();
        assert_eq!(instance.ipv6_address.as_deref(), Some("2001:db8::1"));
        let expected = NetworkInterface {
            id: "eni-0".to_owned(),
            ipv6_prefixes: vec!["2001:db8:0:0:2::/80".parse().unwrap()],
        };
        assert_eq!(instance.interface, Some(expected));
    }

    #[test]
    fn filters_are_numbered_from_one() {
        let parameters = filter_parameters(&[("tag:a", &["1", "2"]), ("instance-id", &["i"])]);
        let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "Filter.1.Name",
            "Filter.1.Value.1",
            "Filter.1.Value.2",
            "Filter.2.Name",
            "Filter.2.Value.1",
        ];
        assert_eq!(names, expected);
    }
}
