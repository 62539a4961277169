//! What a launch template launches, between our form and EC2's.

use super::ec2::{read_tags, tag_specification, write_tags};
use super::iam_documents::name_of;
use super::{physical, physical_ids};
use crate::names::Names;
use aws_sdk_ec2::types as ec2;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud::{
    BlockDevice, Ebs, IamInstanceProfile, KeyPair, LaunchTemplate, MarketOptions, MetadataOptions,
    NetworkInterface, SecurityGroup, Tags, canonical_price,
};
use engine::{Failure, Ref, Refs, Text};

/// What is launched gets the tags as well as the template itself.
const TAGGED: [ec2::ResourceType; 3] = [
    ec2::ResourceType::Instance,
    ec2::ResourceType::Volume,
    ec2::ResourceType::NetworkInterface,
];

/// The tags of all that is launched, by what it is.
pub(super) fn launched_tags(data: &ec2::ResponseLaunchTemplateData) -> Vec<Tags> {
    let of = |what: &ec2::ResourceType| {
        let mut all = data.tag_specifications().iter();
        let found = all.find(|one| one.resource_type() == Some(what));
        found.map_or_else(Tags::new, |one| read_tags(one.tags()))
    };
    TAGGED.iter().map(of).collect()
}

/// The template's newest version in our form. `None`: it lacks what every template of ours has.
pub(super) fn parse_template_data(
    name: &str,
    data: &ec2::ResponseLaunchTemplateData,
    tags: Tags,
    names: &Names,
) -> Option<LaunchTemplate> {
    let devices = data.block_device_mappings().iter().filter_map(read_device);
    Some(LaunchTemplate {
        launch_template_name: name.to_owned(),
        block_device_mappings: devices.collect(),
        credit_specification: data
            .credit_specification()
            .and_then(|one| one.cpu_credits().map(ToOwned::to_owned)),
        iam_instance_profile: read_profile(data.iam_instance_profile(), names),
        image_id: data.image_id()?.to_owned(),
        instance_type: data.instance_type()?.as_str().to_owned(),
        instance_market_options: data.instance_market_options().and_then(read_market),
        key_name: data.key_name().map(|key| names.reference::<KeyPair>(key)),
        metadata_options: read_metadata(data.metadata_options()),
        monitoring: data
            .monitoring()
            .and_then(aws_sdk_ec2::types::LaunchTemplatesMonitoring::enabled)
            .unwrap_or_default(),
        ebs_optimized: data.ebs_optimized(),
        network_interface: read_interface(data.network_interfaces().first(), names),
        tenancy: data
            .placement()
            .and_then(|one| one.tenancy())
            .map(|one| one.as_str().to_owned()),
        tags,
        user_data: data
            .user_data()
            .map(|data| Text::literal(decode_user_data(data))),
    })
}

/// User data as text.
pub(crate) fn decode_user_data(user_data: &str) -> String {
    let bytes = STANDARD.decode(user_data).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// By ARN or by name; the names of ours are known by their ARNs.
fn read_profile(
    raw: Option<&ec2::LaunchTemplateIamInstanceProfileSpecification>,
    names: &Names,
) -> Ref {
    let name = raw.and_then(|one| one.name().or(one.arn()));
    let name = name.unwrap_or_default();
    let known = names.find_id::<IamInstanceProfile>(|arn| name_of(arn) == name_of(name));
    known.map_or_else(|| Ref::Given(name.to_owned()), |id| Ref::own(&id))
}

fn read_device(raw: &ec2::LaunchTemplateBlockDeviceMapping) -> Option<BlockDevice> {
    Some(BlockDevice {
        device_name: raw.device_name()?.to_owned(),
        ebs: raw.ebs().map(|ebs| Ebs {
            delete_on_termination: ebs.delete_on_termination().unwrap_or(true),
            encrypted: ebs.encrypted(),
            iops: ebs.iops(),
            kms_key_id: ebs.kms_key_id().map(ToOwned::to_owned),
            throughput: ebs.throughput(),
            volume_size: ebs.volume_size().unwrap_or_default(),
            volume_type: ebs
                .volume_type()
                .map_or_else(String::new, |one| one.as_str().to_owned()),
        }),
        virtual_name: raw.virtual_name().map(ToOwned::to_owned),
    })
}

fn read_market(raw: &ec2::LaunchTemplateInstanceMarketOptions) -> Option<MarketOptions> {
    let spot = raw.spot_options()?;
    let behavior = spot.instance_interruption_behavior();
    Some(MarketOptions {
        max_price: canonical_price(spot.max_price().unwrap_or_default()),
        instance_interruption_behavior: behavior.map(|one| one.as_str().to_owned()),
    })
}

fn read_metadata(raw: Option<&ec2::LaunchTemplateInstanceMetadataOptions>) -> MetadataOptions {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    MetadataOptions {
        http_endpoint: text(
            raw.and_then(|one| one.http_endpoint())
                .map(aws_sdk_ec2::types::LaunchTemplateInstanceMetadataEndpointState::as_str),
        ),
        http_protocol_ipv6: text(
            raw.and_then(|one| one.http_protocol_ipv6())
                .map(aws_sdk_ec2::types::LaunchTemplateInstanceMetadataProtocolIpv6::as_str),
        ),
        http_put_response_hop_limit: raw
            .and_then(aws_sdk_ec2::types::LaunchTemplateInstanceMetadataOptions::http_put_response_hop_limit)
            .unwrap_or_default(),
        http_tokens: text(
            raw.and_then(|one| one.http_tokens())
                .map(aws_sdk_ec2::types::LaunchTemplateHttpTokensState::as_str),
        ),
    }
}

fn read_interface(
    raw: Option<&ec2::LaunchTemplateInstanceNetworkInterfaceSpecification>,
    names: &Names,
) -> NetworkInterface {
    let groups = raw
        .map(aws_sdk_ec2::types::LaunchTemplateInstanceNetworkInterfaceSpecification::groups)
        .unwrap_or_default();
    NetworkInterface {
        associate_public_ip_address: raw
            .and_then(aws_sdk_ec2::types::LaunchTemplateInstanceNetworkInterfaceSpecification::associate_public_ip_address)
            .unwrap_or_default(),
        delete_on_termination: raw
            .and_then(aws_sdk_ec2::types::LaunchTemplateInstanceNetworkInterfaceSpecification::delete_on_termination)
            .unwrap_or_default(),
        ipv6_address_count: raw
            .and_then(aws_sdk_ec2::types::LaunchTemplateInstanceNetworkInterfaceSpecification::ipv6_address_count)
            .unwrap_or_default(),
        groups: names.references::<SecurityGroup>(groups.iter().map(String::as_str)),
    }
}

/// The request for a version that launches what is wanted.
pub(super) fn template_data_request(
    want: &LaunchTemplate,
    refs: &Refs,
    call: &str,
) -> Result<ec2::RequestLaunchTemplateData, Failure> {
    let profile = physical(refs, &want.iam_instance_profile, call)?;
    let of_profile = ec2::LaunchTemplateIamInstanceProfileSpecificationRequest::builder();
    // Ours go by name, as kOps has them; those of the user as the user gives them.
    let of_profile = match want.iam_instance_profile {
        Ref::Given(_) if profile.starts_with("arn:") => of_profile.arn(profile),
        _ => of_profile.name(name_of(&profile)),
    };
    let key = want.key_name.as_ref();
    let key = key.map(|key: &Ref| physical(refs, key, call)).transpose()?;
    let user_data = want.user_data.as_ref().and_then(Text::as_known);
    let monitoring = ec2::LaunchTemplatesMonitoringRequest::builder().enabled(want.monitoring);
    let devices = want.block_device_mappings.iter().map(write_device);
    let tenancy = want.tenancy.as_deref().map(ec2::Tenancy::from);
    let placement = |one| {
        ec2::LaunchTemplatePlacementRequest::builder()
            .tenancy(one)
            .build()
    };
    let credits = want.credit_specification.clone();
    let credits = credits.map(|one| {
        ec2::CreditSpecificationRequest::builder()
            .cpu_credits(one)
            .build()
    });
    let tags = TAGGED.map(|what| {
        let tagged = tag_specification(what.clone(), &want.tags);
        ec2::LaunchTemplateTagSpecificationRequest::builder()
            .set_resource_type(tagged.resource_type)
            .set_tags(Some(write_tags(&want.tags)))
            .build()
    });
    Ok(ec2::RequestLaunchTemplateData::builder()
        .set_block_device_mappings(Some(devices.collect()))
        .set_credit_specification(credits)
        .iam_instance_profile(of_profile.build())
        .image_id(&want.image_id)
        .instance_type(ec2::InstanceType::from(want.instance_type.as_str()))
        .set_instance_market_options(want.instance_market_options.as_ref().map(write_market))
        .set_key_name(key)
        .metadata_options(write_metadata(&want.metadata_options))
        .monitoring(monitoring.build())
        .set_ebs_optimized(want.ebs_optimized)
        .network_interfaces(write_interface(&want.network_interface, refs, call)?)
        .set_placement(tenancy.map(placement))
        .set_tag_specifications(Some(tags.to_vec()))
        .set_user_data(user_data.map(|text| STANDARD.encode(text)))
        .build())
}

fn write_device(device: &BlockDevice) -> ec2::LaunchTemplateBlockDeviceMappingRequest {
    let ebs = device.ebs.as_ref().map(|ebs| {
        ec2::LaunchTemplateEbsBlockDeviceRequest::builder()
            .delete_on_termination(ebs.delete_on_termination)
            .set_encrypted(ebs.encrypted)
            .set_iops(ebs.iops)
            .set_kms_key_id(ebs.kms_key_id.clone())
            .set_throughput(ebs.throughput)
            .volume_size(ebs.volume_size)
            .volume_type(ec2::VolumeType::from(ebs.volume_type.as_str()))
            .build()
    });
    ec2::LaunchTemplateBlockDeviceMappingRequest::builder()
        .device_name(&device.device_name)
        .set_ebs(ebs)
        .set_virtual_name(device.virtual_name.clone())
        .build()
}

fn write_market(market: &MarketOptions) -> ec2::LaunchTemplateInstanceMarketOptionsRequest {
    let behavior = market.instance_interruption_behavior.as_deref();
    let spot = ec2::LaunchTemplateSpotMarketOptionsRequest::builder()
        .max_price(&market.max_price)
        .set_instance_interruption_behavior(behavior.map(ec2::InstanceInterruptionBehavior::from));
    ec2::LaunchTemplateInstanceMarketOptionsRequest::builder()
        .market_type(ec2::MarketType::Spot)
        .spot_options(spot.build())
        .build()
}

fn write_metadata(options: &MetadataOptions) -> ec2::LaunchTemplateInstanceMetadataOptionsRequest {
    let endpoint = options.http_endpoint.as_str();
    let ipv6 = options.http_protocol_ipv6.as_str();
    ec2::LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .http_endpoint(ec2::LaunchTemplateInstanceMetadataEndpointState::from(
            endpoint,
        ))
        .http_protocol_ipv6(ec2::LaunchTemplateInstanceMetadataProtocolIpv6::from(ipv6))
        .http_put_response_hop_limit(options.http_put_response_hop_limit)
        .http_tokens(ec2::LaunchTemplateHttpTokensState::from(
            options.http_tokens.as_str(),
        ))
        .build()
}

fn write_interface(
    interface: &NetworkInterface,
    refs: &Refs,
    call: &str,
) -> Result<ec2::LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, Failure> {
    let groups = physical_ids(refs, &interface.groups, call)?;
    // Types without IPv6 refuse the field at all, so none is no field.
    let addresses = Some(interface.ipv6_address_count).filter(|count| *count > 0);
    Ok(
        ec2::LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
            .device_index(0)
            .associate_public_ip_address(interface.associate_public_ip_address)
            .delete_on_termination(interface.delete_on_termination)
            .set_ipv6_address_count(addresses)
            .set_groups(Some(groups))
            .build(),
    )
}
