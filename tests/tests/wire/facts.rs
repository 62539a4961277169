//! What is asked of an account before anything is made.

use crate::simulator::Simulator;
use crate::spec::REGION;
use aws_cloud::{address_holders, collect_facts};
use cloud::facts::FactsWanted;
use cloud::given_addresses::GivenAddress;
use engine::Class;
use node::config::Arch;

/// A network, a zone, an image, and instance profiles with a role and without.
const WHAT_EXISTS: &str = r"
ec2 = boto('ec2')
vpc = ec2.create_vpc(CidrBlock='10.9.0.0/16')['Vpc']['VpcId']
subnet = ec2.create_subnet(VpcId=vpc, CidrBlock='10.9.1.0/24', AvailabilityZone='eu-west-1b')['Subnet']['SubnetId']
gateway = ec2.create_internet_gateway()['InternetGateway']['InternetGatewayId']
ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
zone = boto('route53').create_hosted_zone(Name='example.com', CallerReference='1')['HostedZone']['Id'].split('/')[-1]
image = ec2.describe_images(Filters=[{'Name': 'name', 'Values': ['debian-12-arm64-*']}])['Images'][0]['ImageId']
iam = boto('iam')
import json
trust = {'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Principal': {'Service': 'ec2.amazonaws.com'}, 'Action': 'sts:AssumeRole'}]}
iam.create_role(RoleName='machines-of-team', AssumeRolePolicyDocument=json.dumps(trust))
for profile in ('team', 'empty'): iam.create_instance_profile(InstanceProfileName=profile)
iam.add_role_to_instance_profile(InstanceProfileName='team', RoleName='machines-of-team')
there = boto3.client('s3', region_name='us-east-2', endpoint_url=iam.meta.endpoint_url, aws_access_key_id='a', aws_secret_access_key='b')
there.create_bucket(Bucket='elsewhere', CreateBucketConfiguration={'LocationConstraint': 'us-east-2'})
print(vpc, subnet, gateway, zone, image)
";

#[tokio::test]
async fn what_exists_is_found_and_what_does_not_is_left_out() {
    let simulator = Simulator::start_simulator();
    let clients = simulator.cloud_clients(REGION).await;
    let made = simulator.run_python(REGION, WHAT_EXISTS);
    let made: Vec<&str> = made.split_whitespace().collect();
    let [vpc, subnet, gateway, zone, image] = made[..] else {
        panic!("{made:?}");
    };
    let text = |text: &str| text.to_owned();
    let wanted = FactsWanted {
        region: None,
        images: [
            text(image),
            text("debian/debian-12-amd64-20260713-2537"),
            text("136693071363/debian-13-amd64-20260713-2537"),
            text("ubuntu/debian-13-amd64-20260713-2537"),
            text("debian11/debian-1?-amd64-*"),
            text("flatcar/Flatcar-stable-4230.2.0-hvm"),
            text("ami-00000000000000000"),
        ]
        .into(),
        machine_types: ["m6g.large", "m5d.large", "m4.large", "none.large"]
            .map(text)
            .into(),
        offered_in: [text("eu-west-1a")].into(),
        discovery_store: Some(text("s3://elsewhere/issuer")),
        vpc: None,
        egress_only_internet_gateway: false,
        subnets: [text(subnet), text("subnet-00000000000000000")].into(),
        addresses: [text("203.0.113.7")].into(),
        profiles: [text("team"), text("empty"), text("none")].into(),
        hosted_zones: true,
    };
    let facts = collect_facts(&clients, &wanted).await.expect("facts");
    assert_eq!(facts.account, "123456789012");
    assert_eq!(facts.partition, "aws");
    assert_eq!(facts.discovery_region.as_deref(), Some("us-east-2"));
    let images: Vec<&str> = facts.images.keys().map(String::as_str).collect();
    let mut found = vec![
        "136693071363/debian-13-amd64-20260713-2537",
        image,
        "debian/debian-12-amd64-20260713-2537",
        "debian11/debian-1?-amd64-*",
        "flatcar/Flatcar-stable-4230.2.0-hvm",
    ];
    found.sort_unstable();
    assert_eq!(images, found);
    assert_eq!(facts.images[image].arch, Arch::Arm64);
    assert_eq!(facts.images[image].id, image);
    assert_eq!(facts.images[image].unfit, None);
    let flatcar = &facts.images["flatcar/Flatcar-stable-4230.2.0-hvm"];
    assert_eq!(flatcar.unfit.as_deref(), Some("Flatcar"));
    let roles: Vec<_> = facts.profile_roles.iter().collect();
    assert_eq!(roles, [(&text("team"), &text("machines-of-team"))]);
    assert_eq!(facts.zones, ["eu-west-1a", "eu-west-1b", "eu-west-1c"]);
    assert_eq!(facts.instance_types.len(), 3);
    assert_eq!(facts.instance_types["m6g.large"].arch, Arch::Arm64);
    assert_eq!(facts.instance_types["m5d.large"].instance_store_disks, 1);
    assert!(facts.instance_types["m4.large"].xen && !facts.instance_types["m5d.large"].xen);
    assert_eq!(facts.instance_types["m5d.large"].zones, ["eu-west-1a"]);
    assert_eq!(facts.subnets.len(), 1);
    assert_eq!(facts.subnets[subnet].vpc, vpc);
    assert_eq!(facts.subnets[subnet].zone, "eu-west-1b");
    assert_eq!(facts.vpcs[vpc].cidr, "10.9.0.0/16");
    assert_eq!(facts.vpcs[vpc].internet_gateway.as_deref(), Some(gateway));
    assert_eq!(facts.hosted_zones.len(), 1);
    assert_eq!(facts.hosted_zones[0].id, zone);
    assert_eq!(facts.hosted_zones[0].name, "example.com");
}

#[tokio::test]
async fn images_named_in_ways_that_kctl_does_not_look_up_are_refused() {
    let simulator = Simulator::start_simulator();
    let clients = simulator.cloud_clients(REGION).await;
    let text = |text: &str| text.to_owned();
    let by_parameter = FactsWanted {
        images: [text("ssm:/aws/service/debian/release/12/latest/amd64")].into(),
        ..FactsWanted::default()
    };
    let refused = collect_facts(&clients, &by_parameter).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.class, Class::Invalid);
    assert!(refused.message.contains("not supported yet"), "{refused}");

    let by_nobody = FactsWanted {
        images: [text("example.com/image")].into(),
        ..FactsWanted::default()
    };
    let refused = collect_facts(&clients, &by_nobody).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.class, Class::Invalid);
    assert!(refused.message.contains("no owner of images"), "{refused}");
}

#[tokio::test]
async fn an_elastic_ip_is_found_by_its_public_address() {
    let simulator = Simulator::start_simulator();
    let clients = simulator.cloud_clients(REGION).await;
    let made = simulator.run_python(
        REGION,
        "a = boto('ec2').allocate_address(Domain='vpc')\nprint(a['PublicIp'], a['AllocationId'])",
    );
    let (public, allocation) = made.trim().split_once(' ').expect("address and id");
    let wanted = FactsWanted {
        addresses: [public.to_owned(), "203.0.113.7".to_owned()].into(),
        ..FactsWanted::default()
    };
    let facts = collect_facts(&clients, &wanted).await.expect("facts");
    let found: Vec<_> = facts.addresses.into_iter().collect();
    assert_eq!(found, [(public.to_owned(), allocation.to_owned())]);
}

#[tokio::test]
async fn what_has_an_address_is_named() {
    let simulator = Simulator::start_simulator();
    let clients = simulator.cloud_clients(REGION).await;
    let made = simulator.run_python(
        REGION,
        "ec2 = boto('ec2')\n\
         vpc = ec2.create_vpc(CidrBlock='10.7.0.0/16')['Vpc']['VpcId']\n\
         ec2.attach_internet_gateway(InternetGatewayId=ec2.create_internet_gateway()['InternetGateway']['InternetGatewayId'], VpcId=vpc)\n\
         subnet = ec2.create_subnet(VpcId=vpc, CidrBlock='10.7.32.0/24')['Subnet']['SubnetId']\n\
         interface = ec2.create_network_interface(SubnetId=subnet, PrivateIpAddress='10.7.32.9', Description='a printer')['NetworkInterface']['NetworkInterfaceId']\n\
         used, free = (ec2.allocate_address(Domain='vpc')['AllocationId'] for _ in range(2))\n\
         ec2.associate_address(AllocationId=used, NetworkInterfaceId=interface)\n\
         print(subnet, interface, used, free)",
    );
    let words: Vec<&str> = made.split_whitespace().collect();
    let private = |address: &str| GivenAddress::Private {
        subnet: words[0].to_owned(),
        address: address.to_owned(),
    };
    let elastic = |id: &str| GivenAddress::Elastic(id.to_owned());
    let asked = [
        elastic(words[2]),
        elastic(words[3]),
        elastic("eipalloc-0"),
        private("10.7.32.9"),
        private("10.7.32.10"),
    ];
    let holders = address_holders(&clients, asked.iter()).await;
    let holders = holders.expect("what has them");
    let named: Vec<&GivenAddress> = holders.keys().collect();
    assert_eq!(named, [&asked[0], &asked[3]]);
    assert!(
        holders.values().all(|text| text.contains(words[1])),
        "{holders:?}"
    );
    assert!(holders[&asked[3]].contains("a printer"), "{holders:?}");
}
