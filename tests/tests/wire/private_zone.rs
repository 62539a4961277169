//! A private hosted zone: the cluster's VPC looks names up in it, from the first update on and until it goes.

use crate::cluster::{InCluster, run, show_plan};
use crate::simulator::Simulator;
use crate::spec::{REGION, dependency_closure, desired_objects, full_spec, store_objects};
use cloud::Cloud;
use engine::{Action, Id, Ref, Resource};
use full::DnsKind;

/// A private zone of the same name as the public one, and the VPC of the user's that it was made with.
const PRIVATE_ZONE: &str = r"
vpc = boto('ec2').create_vpc(CidrBlock='10.200.0.0/16')['Vpc']['VpcId']
zone = boto('route53').create_hosted_zone(Name='example.com', CallerReference='private', VPC={'VPCRegion': 'eu-west-1', 'VPCId': vpc}, HostedZoneConfig={'PrivateZone': True})['HostedZone']['Id']
print(zone.split('/')[-1], vpc)
";

/// The VPCs of the private zone.
const VPCS: &str =
    "for vpc in boto('route53').get_hosted_zone(Id=ZONE)['VPCs']:\n  print(vpc['VPCId'])";

struct PrivateZone {
    cluster: InCluster,
    zone: String,
    /// The user's VPC that the zone was made with.
    base: String,
}

impl PrivateZone {
    async fn new(simulator: &Simulator) -> Self {
        let mut cluster = InCluster::new(simulator).await;
        let made = simulator.run_python(REGION, PRIVATE_ZONE);
        let (zone, base) = made.trim().split_once(' ').expect("zone and VPC");
        // The scope is about the one zone that is known.
        cluster.facts.hosted_zones.retain(|_| false);
        cluster.facts.hosted_zones.push(cloud::facts::HostedZone {
            id: zone.to_owned(),
            name: "example.com".to_owned(),
            private: true,
        });
        Self {
            zone: zone.to_owned(),
            base: base.to_owned(),
            cluster,
        }
    }

    /// The association and what it needs, and records.
    fn desired_objects(&self, shared_vpc: Option<&str>) -> Vec<Cloud> {
        let mut full = full_spec(&self.cluster.facts, |text| {
            *text = text.replace("dns: {type: Public}", "dns: {type: Private}");
        });
        assert_eq!(full.dns.kind, DnsKind::Private);
        full.network.shared_vpc = shared_vpc.map(ToOwned::to_owned);
        let all = desired_objects(&full, store_objects("completed: 1\n"));
        let of = |one: &Cloud| match one {
            Cloud::Route53ZoneAssociation(_) => Some(one.id()),
            // Those that protokube fills: an alias would need a balancer and all below it.
            Cloud::Route53Record(record) => record.alias_target.is_none().then(|| one.id()),
            _ => None,
        };
        let ids: Vec<Id> = all.iter().filter_map(of).collect();
        dependency_closure(&all, &ids)
    }

    fn zone_vpcs(&self, simulator: &Simulator) -> Vec<String> {
        let script = VPCS.replace("ZONE", &format!("'{}'", self.zone));
        let found = simulator.run_python(REGION, &script);
        found.split_whitespace().map(ToOwned::to_owned).collect()
    }
}

#[tokio::test]
async fn the_vpc_of_a_cluster_is_associated_stays_so_and_leaves_no_trace() {
    let simulator = Simulator::start_simulator();
    let private = PrivateZone::new(&simulator).await;
    let before = simulator.list_resources(REGION);
    let want = private.desired_objects(None);
    private.cluster.run_until_converged(&want).await;
    assert_eq!(private.zone_vpcs(&simulator).len(), 2);

    // Undone by somebody else, it is made again.
    let undo = format!(
        "dns = boto('route53')\nfor vpc in dns.get_hosted_zone(Id='{zone}')['VPCs']:\n  if vpc['VPCId'] != '{base}':\n    dns.disassociate_vpc_from_hosted_zone(HostedZoneId='{zone}', VPC=vpc)",
        zone = private.zone,
        base = private.base,
    );
    simulator.run_python(REGION, &undo);
    let plan = private.cluster.run_until_converged(&want).await;
    let kinds: Vec<&str> = plan.steps.keys().map(Id::kind).collect();
    assert_eq!(kinds, ["route53_zone_association"], "{}", show_plan(&plan));

    private.cluster.run_until_converged(&[]).await;
    assert_eq!(simulator.list_resources(REGION), before);
}

#[tokio::test]
async fn the_last_vpc_of_a_zone_is_let_go_with_the_vpc() {
    let simulator = Simulator::start_simulator();
    let private = PrivateZone::new(&simulator).await;
    private
        .cluster
        .run_until_converged(&private.desired_objects(None))
        .await;
    let only_ours = format!(
        "boto('route53').disassociate_vpc_from_hosted_zone(HostedZoneId='{}', VPC={{'VPCRegion': '{REGION}', 'VPCId': '{}'}})",
        private.zone, private.base
    );
    simulator.run_python(REGION, &only_ours);
    let (plan, seen, world) = private.cluster.plan_update(&[]).await;
    let report = run(&world, &plan, &seen).await;
    assert!(report.is_complete(), "{:#?}", report.failed);
    let ours = "print(len(boto('ec2').describe_vpcs(Filters=[{'Name': 'tag:Name', 'Values': ['prod.example.com']}])['Vpcs']))";
    assert_eq!(simulator.run_python(REGION, ours).trim(), "0");
}

#[tokio::test]
async fn an_association_of_the_users_vpc_is_made_if_it_lacks_and_is_never_taken_away() {
    let simulator = Simulator::start_simulator();
    let private = PrivateZone::new(&simulator).await;
    let other = simulator.run_python(
        REGION,
        "print(boto('ec2').create_vpc(CidrBlock='10.0.0.0/16')['Vpc']['VpcId'])",
    );
    let association = |vpc: &str| -> Vec<Cloud> {
        let all = private.desired_objects(Some(vpc));
        let only = all
            .into_iter()
            .filter(|one| matches!(one, Cloud::Route53ZoneAssociation(_)));
        let only: Vec<Cloud> = only.collect();
        let [Cloud::Route53ZoneAssociation(one)] = only.as_slice() else {
            panic!("{only:?}");
        };
        assert_eq!(one.vpc_id, Ref::Given(vpc.to_owned()));
        only
    };
    let (there, _, _) = private
        .cluster
        .plan_update(&association(&private.base))
        .await;
    assert!(there.is_empty(), "{}", show_plan(&there));
    let made = private
        .cluster
        .run_until_converged(&association(other.trim()))
        .await;
    assert_eq!(made.count(Action::Create), 1);
    let (gone, _, _) = private.cluster.plan_update(&[]).await;
    assert!(gone.is_empty(), "{}", show_plan(&gone));
    assert_eq!(private.zone_vpcs(&simulator).len(), 2);
}
