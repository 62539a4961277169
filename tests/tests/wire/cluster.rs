//! A cluster in the simulator: what the CLI does with the AWS layer, without the CLI.

use crate::simulator::Simulator;
use crate::spec::{self, NAME, REGION};
use aws_client::store::{Expect, Store};
use aws_cloud::{AwsWorld, CloudClients, Scope, collect_facts};
use cloud::Cloud;
use cloud::facts::{Facts, FactsWanted};
use cloud::settle::settle;
use engine::{
    Clock, EngineContext, Event, NoJournal, Options, Plan, Report, Snapshot, World, apply, plan,
};
use node::names;
use node::pki::{
    KeyAlgorithm, Keyset, STATE_SIGNER, SystemKeys, keyset_path, mint_keyset, write_keyset,
};
use std::cell::Cell;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

pub struct InCluster {
    pub clients: CloudClients,
    pub store: Store,
    pub facts: Facts,
    pub refresh: bool,
    /// Pods of the cluster have roles.
    pub has_issuer: bool,
    /// The spec is that of an IPv6 cluster.
    pub ipv6: bool,
    /// Signs objects of the store; it is in the store too.
    signer: Keyset,
    /// How many seconds the engine believes have passed when one has.
    pub speed: u32,
    /// Moves on with every run that ended in an orderly way.
    generation: Cell<u32>,
}

/// What stands beside the cluster and is the user's.
const BESIDE: &str = r#"
boto('s3').create_bucket(Bucket='state', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'})
boto('s3').create_bucket(Bucket='issuer', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'}, ObjectOwnership='BucketOwnerPreferred')
boto('route53').create_hosted_zone(Name='example.com', CallerReference='1')
boto('iam').create_policy(PolicyName='mine', PolicyDocument='{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:Get*", "Resource": "*"}]}')
boto('iam').create_policy(PolicyName='other', PolicyDocument='{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:Put*", "Resource": "*"}]}')
"#;

impl InCluster {
    /// A bucket and a hosted zone, and what the spec needs to know.
    pub async fn new(simulator: &Simulator) -> Self {
        let clients = simulator.cloud_clients(REGION).await;
        simulator.run_python(REGION, BESIDE);
        let store = Store::open("s3://state/clusters", clients.shared_clients()).expect("a store");
        let facts = collect_facts(&clients, &wanted_facts())
            .await
            .expect("facts");
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
        let signer = mint_keyset(STATE_SIGNER, KeyAlgorithm::EcdsaP256, &mut keys).expect("a key");
        let text = write_keyset(&signer).expect("a text").reveal().to_owned();
        let key = format!("{NAME}/{}", keyset_path(STATE_SIGNER));
        let put = store.put(&key, text.into_bytes(), Expect::Any);
        put.await.expect("a stored keyset");
        Self {
            clients,
            store,
            facts,
            refresh: false,
            has_issuer: true,
            ipv6: false,
            signer,
            speed: 1,
            generation: Cell::new(1),
        }
    }

    pub fn cluster_scope(&self, expect: &[Cloud]) -> Scope {
        let roles = ["masters", "nodes", "bastions"];
        let records = [
            "api",
            "api.internal",
            "kops-controller.internal",
            "etcd-a.internal",
        ];
        let balancers = ["api", "bastion", "tcp", "tls", "kops-controller"];
        let prefix = |of: &str| {
            let name = names::load_balancer(&format!("{of}.{NAME}"));
            name.rsplit_once('-').expect("a hash").0.to_owned()
        };
        Scope {
            own_tags: None,
            cluster: NAME.to_owned(),
            account: self.facts.account.clone(),
            partition: self.facts.partition.clone(),
            region: REGION.to_owned(),
            base: NAME.to_owned(),
            roles: roles.map(|role| format!("{role}.{NAME}")).to_vec(),
            issuers: [(
                if self.ipv6 {
                    "https://s3.dualstack.eu-west-1.amazonaws.com/issuer/prod".to_owned()
                } else {
                    "https://issuer.s3.eu-west-1.amazonaws.com/prod".to_owned()
                },
                "s3://issuer/prod".to_owned(),
            )]
            .into_iter()
            .filter(|_| self.has_issuer)
            .collect(),
            token_keys: Some(spec::token_keys()),
            hosted_zone: self.facts.hosted_zones.first().map(|zone| zone.id.clone()),
            record_names: records.map(|name| format!("{name}.{NAME}")).to_vec(),
            balancer_prefixes: balancers.map(prefix).to_vec(),
            queue: names::queue_name(NAME),
            event_rule_prefix: names::event_rule(NAME, ""),
            route_destinations: vec!["192.168.0.0/16".to_owned()],
            ipv6: self.ipv6,
            generation: self.generation.get().to_string(),
            expect: expect.to_vec(),
            refresh: self.refresh,
            signer: Some(self.signer.clone()),
            assets: spec::asset_source(),
        }
    }

    pub fn aws_world(&self, expect: &[Cloud]) -> AwsWorld {
        let (clients, store) = (self.clients.clone(), self.store.clone());
        AwsWorld::new(clients, store, self.cluster_scope(expect))
    }

    /// What an update would do.
    pub async fn plan_update(&self, desired: &[Cloud]) -> (Plan<Cloud>, Snapshot<Cloud>, AwsWorld) {
        let world = self.aws_world(desired);
        let seen = world.observe().await.expect("a sweep");
        let (desired, seen) = settle(desired.to_vec(), seen);
        let plan = plan(&desired, &seen).expect("a plan");
        (plan, seen, world)
    }

    /// Applies the plan of an update.
    pub async fn run_update(&self, desired: &[Cloud]) -> Report {
        let (plan, seen, world) = self.plan_update(desired).await;
        run_at_speed(&world, &plan, &seen, self.speed).await
    }

    /// Does it and insists that all of it worked and that nothing is left to do.
    pub async fn run_until_converged(&self, desired: &[Cloud]) -> Plan<Cloud> {
        let (plan, seen, world) = self.plan_update(desired).await;
        let report = run_at_speed(&world, &plan, &seen, self.speed).await;
        assert!(report.is_complete(), "{:#?}", report.failed);
        self.next_generation();
        self.is_settled(desired).await;
        plan
    }

    /// A run has ended in an orderly way.
    pub fn next_generation(&self) {
        self.generation.set(self.generation.get() + 1);
    }

    /// Insists that there is nothing to do.
    pub async fn is_settled(&self, desired: &[Cloud]) {
        let (again, _, _) = self.plan_update(desired).await;
        assert!(again.is_empty(), "{}", show_plan(&again));
    }
}

pub fn show_plan(plan: &Plan<Cloud>) -> String {
    let line = |step: &engine::Step<Cloud>| {
        format!(
            "{:?} {} {:?} {:#?}",
            step.action, step.id, step.reason, step.changes
        )
    };
    plan.steps.values().map(line).collect::<Vec<_>>().join("\n")
}

pub async fn run(world: &AwsWorld, plan: &Plan<Cloud>, seen: &Snapshot<Cloud>) -> Report {
    run_at_speed(world, plan, seen, 1).await
}

async fn run_at_speed(
    world: &AwsWorld,
    plan: &Plan<Cloud>,
    seen: &Snapshot<Cloud>,
    speed: u32,
) -> Report {
    let outside = EngineContext {
        world,
        journal: &NoJournal,
        clock: &WallClock {
            begun: Instant::now(),
            speed,
        },
        options: Options {
            deadline: Duration::from_secs(30) * speed,
            settle: Duration::from_millis(100),
            ..Options::default()
        },
        stop: &|| false,
    };
    let mut tell = |event: Event| {
        if std::env::var_os("WIRE_EVENTS").is_some() {
            println!("{event:?}");
        }
    };
    apply(plan, seen, &outside, &mut tell)
        .await
        .expect("a sound plan")
}

/// What the spec in this folder asks about.
fn wanted_facts() -> FactsWanted {
    let (_, groups) = spec::read_spec(|_| {});
    let images = groups.iter().filter_map(|group| group.spec.image.clone());
    let types = groups
        .iter()
        .filter_map(|group| group.spec.machine_type.clone());
    FactsWanted {
        images: images.collect(),
        // One for a change.
        machine_types: types.chain(["m5.large".to_owned()]).collect(),
        hosted_zones: true,
        ..FactsWanted::default()
    }
}

/// The time, some times faster.
struct WallClock {
    begun: Instant,
    speed: u32,
}

impl Clock for WallClock {
    fn now(&self) -> Duration {
        self.begun.elapsed() * self.speed
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration / self.speed).await;
    }
}
