//! Names follow instances: `/etc/hosts` is rewritten in place, the hosted zone only on changes.

use crate::etcd::{member_settings, serving_member};
use crate::test_host::{FakeEc2, INSTANCE, TestHost, ZONE, node_config};
use aws_client::dns::{AddressFamily, AddressRecord, DnsRecord, RecordName};
use aws_client::ec2_query::{Attachment, Instance};
use engine::Failure;
use etcd_member::ec2::Ec2;
use etcd_member::hosts::parse_entries;
use etcd_rules::{FormationRecord, Generation, RecordedMember, record_key};
use etcd_store::FormationStore;
use node::config::NodeConfig;
use protokube::names::{
    ApiServers, MemberNames, MemberPublisher, PublishedRecords, ZonePublisher as ZoneKeeper,
    ZoneRecords, restore_names,
};
use protokube_role::pace::{PollPace, sleep_for};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PACE: Duration = Duration::from_millis(1);

const QUICK: PollPace = PollPace {
    quick: PACE,
    waiting: PACE,
    rest: PACE,
    sleep: sleep_for,
};

pub fn fake_instance(id: &str, private: &str) -> Instance {
    Instance {
        id: id.into(),
        state: "running".into(),
        private_ip: Some(private.into()),
        public_ip: Some("198.51.100.7".into()),
        zone: ZONE.into(),
        ..Instance::default()
    }
}

fn member_names<'a>(host: &'a TestHost, config: &'a NodeConfig) -> MemberNames<'a, FakeEc2> {
    MemberNames {
        host: &host.host,
        ec2: &*host.cloud,
        config,
        formations: BTreeMap::from([("main".to_owned(), FormationStore::new(&host.store, "main"))]),
        instance: INSTANCE,
        pace: QUICK,
    }
}

async fn with_member(host: &TestHost, address: &str) {
    host.cloud.add_volume("vol-0a", "main");
    let attached = host.cloud.attach_volume("vol-0a", INSTANCE, "/dev/xvdu");
    attached.await.unwrap();
    let instances = &host.cloud.instances;
    instances
        .lock()
        .unwrap()
        .push(fake_instance(INSTANCE, address));
}

/// Keeps the names until `until` has ended.
async fn keep_names_until(host: &TestHost, config: &NodeConfig, until: impl Future<Output = ()>) {
    let members = member_names(host, config);
    tokio::select! {
        ended = members.keep_names() => panic!("{ended:?}"),
        () = until => {}
    }
}

#[tokio::test]
async fn members_are_named_in_the_same_file_beside_what_others_wrote() {
    let host = TestHost::new().await;
    let (config, file) = (node_config(), host.path("etc/hosts"));
    let inode = file.metadata().unwrap().ino();
    with_member(&host, "10.0.0.4").await;
    let name = format!("etcd-a.internal.{}", config.cluster);
    let text = || std::fs::read_to_string(&file).unwrap();
    let address = || parse_entries(&text()).get(&name).map(ToString::to_string);
    let follows = async {
        while address().as_deref() != Some("10.0.0.4") {
            tokio::time::sleep(PACE).await;
        }
        std::fs::write(&file, format!("{}10.9.9.9 mine\n", text())).unwrap();
        host.cloud.instances.lock().unwrap()[0] = fake_instance(INSTANCE, "10.0.0.5");
        while address().as_deref() != Some("10.0.0.5") {
            tokio::time::sleep(PACE).await;
        }
        // Its instance is gone, and the volume is attached nowhere yet.
        host.cloud.volumes.lock().unwrap()[0].attachment = None;
        tokio::time::sleep(PACE * 20).await;
    };
    keep_names_until(&host, &config, follows).await;
    assert_eq!(address().as_deref(), Some("10.0.0.5"));
    assert!(text().contains("127.0.0.1 localhost\n") && text().contains("10.9.9.9 mine\n"));
    assert_eq!(file.metadata().unwrap().ino(), inode);
}

/// A volume that was restored from a snapshot with its tags and attached to an unrelated instance.
#[tokio::test]
async fn a_copy_with_the_same_tags_never_moves_a_name() {
    let host = TestHost::new().await;
    let (config, file) = (node_config(), host.path("etc/hosts"));
    with_member(&host, "10.0.0.4").await;
    let record = FormationRecord::new(
        Generation::forming("t"),
        [("a".to_owned(), RecordedMember::on_volume("vol-0a", true))].into(),
    );
    let text = record.to_json().into_bytes();
    let expect = aws_client::store::Expect::Absent;
    let written = host.store.put(&record_key("main"), text, expect).await;
    written.unwrap();
    let copy = |host: &TestHost| {
        let mut volumes = host.cloud.volumes.lock().unwrap();
        let mut copy = volumes[0].clone();
        "vol-0copy".clone_into(&mut copy.id);
        copy.attachment = Some(Attachment {
            instance: "i-0b".into(),
            device: "/dev/sdf".into(),
            state: "attached".into(),
        });
        volumes.push(copy);
    };
    let instances = &host.cloud.instances;
    instances
        .lock()
        .unwrap()
        .push(fake_instance("i-0b", "10.0.0.66"));
    let name = format!("etcd-a.internal.{}", config.cluster);
    let address = || {
        let text = std::fs::read_to_string(&file).unwrap();
        parse_entries(&text).get(&name).map(ToString::to_string)
    };
    keep_names_until(&host, &config, async {
        while address().is_none() {
            tokio::time::sleep(PACE).await;
        }
        copy(&host);
        tokio::time::sleep(PACE * 20).await;
        assert_eq!(
            address().as_deref(),
            Some("10.0.0.4"),
            "beside the recorded one"
        );
        host.cloud.volumes.lock().unwrap().remove(0);
        tokio::time::sleep(PACE * 20).await;
    })
    .await;
    assert_eq!(
        address().as_deref(),
        Some("10.0.0.4"),
        "without the recorded one"
    );
}

/// cloud-init with `manage_etc_hosts: true` writes the file anew at every boot.
#[tokio::test]
async fn names_survive_a_boot_that_writes_the_file_anew_while_ec2_does_not_answer() {
    let host = TestHost::new().await;
    let (config, file) = (node_config(), host.path("etc/hosts"));
    with_member(&host, "10.0.0.4").await;
    let text = || std::fs::read_to_string(&file).unwrap();
    let follows = async {
        while parse_entries(&text()).is_empty() {
            tokio::time::sleep(PACE).await;
        }
        tokio::time::sleep(PACE * 20).await;
    };
    keep_names_until(&host, &config, follows).await;
    let names = parse_entries(&text());
    std::fs::write(&file, "127.0.1.1 ip-10-0-0-4\n").unwrap();
    *host.cloud.down.lock().unwrap() = true;
    restore_names(&host.host).unwrap();
    assert_eq!(parse_entries(&text()), names);
    assert!(text().starts_with("127.0.1.1 ip-10-0-0-4\n"));
    // `/etc/hosts` is newer than the copy.
    let newer = text().replace("10.0.0.4 etcd", "10.0.0.9 etcd");
    std::fs::write(&file, &newer).unwrap();
    restore_names(&host.host).unwrap();
    assert_eq!(text(), newer);
}

/// A hosted zone in memory.
#[derive(Default)]
pub struct FakeZone {
    published: Mutex<PublishedRecords>,
    writes: Mutex<Vec<Vec<AddressRecord>>>,
}

impl ZoneRecords for FakeZone {
    async fn read_names(&self, names: &[RecordName]) -> Result<PublishedRecords, Failure> {
        let all = self.published.lock().unwrap();
        let matching = names
            .iter()
            .filter_map(|name| Some((name.clone(), all.get(name)?.clone())));
        Ok(matching.collect())
    }

    async fn write_names(&self, names: &[AddressRecord]) -> Result<(), Failure> {
        self.writes.lock().unwrap().push(names.to_vec());
        let found = names
            .iter()
            .map(|one| (one.name.clone(), DnsRecord::Addresses(one.clone())));
        self.published.lock().unwrap().extend(found);
        Ok(())
    }
}

/// The API's list of ready servers; `None` if the local one is not ready.
#[derive(Default)]
pub struct FakeApiServers(Mutex<Option<BTreeSet<IpAddr>>>);

impl FakeApiServers {
    pub fn set_ready(&self, ready: &[u8]) {
        let ready = ready.iter().map(|last| IpAddr::from([10, 0, 0, *last]));
        *self.0.lock().unwrap() = Some(ready.collect());
    }
}

impl ApiServers for FakeApiServers {
    async fn ready_addresses(&self) -> anyhow::Result<Option<BTreeSet<IpAddr>>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

/// What kctl puts into the zone before an API server is ready.
fn placeholder_record(name: &str) -> (RecordName, DnsRecord) {
    let record = RecordName::new(name, AddressFamily::V4);
    let addresses = AddressRecord {
        name: record.clone(),
        addresses: ["203.0.113.123".parse().unwrap()].into(),
        ttl: 10,
    };
    (record, DnsRecord::Addresses(addresses))
}

#[tokio::test]
async fn the_zone_leads_to_ready_api_servers_and_is_never_emptied() {
    let host = TestHost::new().await;
    let (config, zone, servers) = (
        node_config(),
        FakeZone::default(),
        FakeApiServers::default(),
    );
    let names = ["api", "api.internal", "kops-controller.internal"];
    let names = names.map(|name| format!("{name}.{}", config.cluster));
    let placeholders = names.each_ref().map(|name| placeholder_record(name));
    zone.published.lock().unwrap().extend(placeholders);
    let writes = || zone.writes.lock().unwrap().len();
    let settles = async |count: usize| {
        while writes() < count {
            tokio::time::sleep(PACE).await;
        }
        tokio::time::sleep(PACE * 60).await;
        assert_eq!(writes(), count, "at rest");
    };
    let follows = async {
        // Two control planes run, and no API server is ready: the placeholders stay.
        let both = [
            fake_instance(INSTANCE, "10.0.0.4"),
            fake_instance("i-0b", "10.0.0.5"),
        ];
        host.cloud.instances.lock().unwrap().extend(both);
        tokio::time::sleep(PACE * 20).await;
        assert_eq!(writes(), 0);
        servers.set_ready(&[4]);
        settles(1).await;
        servers.set_ready(&[4, 5]);
        settles(2).await;
        // One still runs, but its API server is not ready.
        servers.set_ready(&[5]);
        settles(3).await;
        servers.set_ready(&[]);
        settles(3).await;
        *servers.0.lock().unwrap() = None;
        settles(3).await;
    };
    let keeper = ZoneKeeper {
        ec2: &*host.cloud,
        records: &zone,
        servers: &servers,
        config: &config,
        pace: (PACE, sleep_for),
    };
    tokio::select! {
        ended = keeper.keep_published() => panic!("{ended:?}"),
        () = follows => {}
    }
    let written_addresses = |write: usize| {
        let mut written = zone.writes.lock().unwrap()[write].clone();
        written.sort_by(|one, other| one.name.cmp(&other.name));
        let line = |one: &AddressRecord| format!("{} {:?} {}", one.name, one.addresses, one.ttl);
        written.iter().map(line).collect::<Vec<String>>()
    };
    assert_eq!(
        written_addresses(0),
        [
            format!("{} {{198.51.100.7}} 60", names[0]),
            format!("{} {{10.0.0.4}} 60", names[1]),
            format!("{} {{10.0.0.4}} 60", names[2]),
        ]
    );
    let internal = |write: usize| written_addresses(write).pop().unwrap();
    assert!(
        internal(1).contains("{10.0.0.4, 10.0.0.5}"),
        "{}",
        internal(1)
    );
    assert!(internal(2).contains("{10.0.0.5}"), "{}", internal(2));
}

/// Three protokubes see different states of EC2 but the same list of the API: none undoes the changes of another.
#[tokio::test]
async fn protokubes_that_see_different_instances_do_not_write_in_turns() {
    let config = node_config();
    let (zone, servers) = (FakeZone::default(), FakeApiServers::default());
    servers.set_ready(&[4, 5, 6]);
    let instances = [
        TestHost::new().await,
        TestHost::new().await,
        TestHost::new().await,
    ];
    for (seen, host) in instances.iter().enumerate() {
        let all =
            [4, 5, 6].map(|last| fake_instance(&format!("i-0{last}"), &format!("10.0.0.{last}")));
        let mut instances = host.cloud.instances.lock().unwrap();
        instances.extend(all.into_iter().take(seen + 1));
    }
    let keeper = |host: &TestHost| {
        let cloud = Arc::clone(&host.cloud);
        let (zone, servers, config) = (&zone, &servers, &config);
        async move {
            let keeper = ZoneKeeper {
                ec2: &*cloud,
                records: zone,
                servers,
                config,
                pace: (PACE, sleep_for),
            };
            keeper.keep_published().await
        }
    };
    let [one, two, three] = &instances;
    tokio::select! {
        ended = keeper(one) => panic!("{ended:?}"),
        ended = keeper(two) => panic!("{ended:?}"),
        ended = keeper(three) => panic!("{ended:?}"),
        () = tokio::time::sleep(PACE * 300) => {}
    }
    let writes = zone.writes.lock().unwrap();
    let names: Vec<&RecordName> = writes.iter().flatten().map(|one| &one.name).collect();
    let each: BTreeSet<&RecordName> = names.iter().copied().collect();
    assert!(
        names.len() <= 3 * each.len(),
        "at first, and never again: {names:?}"
    );
    let published = zone.published.lock().unwrap();
    for (name, found) in published.iter() {
        let DnsRecord::Addresses(found) = found else {
            panic!("{name}");
        };
        let wanted = if name.name.starts_with("api.a") { 1 } else { 3 };
        assert_eq!(found.addresses.len(), wanted, "{name}");
    }
}

/// What EC2 says about the volume does not matter: the kernel of one instance has it.
#[tokio::test]
async fn the_instance_that_runs_a_member_publishes_its_name_and_no_other_does() {
    let (host, config) = serving_member(false, false).await;
    let name = format!("etcd-a.internal.{}", config.cluster);
    // Another instance, to which EC2 already shows the volume as attached.
    let other = TestHost::new().await;
    let key = record_key("main");
    let record = host.store.get(&key).await.unwrap().unwrap();
    let expect = aws_client::store::Expect::Absent;
    let copied = other.store.put(&key, record.bytes, expect);
    copied.await.unwrap();
    other
        .cloud
        .add_volume_of("vol-0a", "main", "a/a", Some(INSTANCE));
    let zone = FakeZone::default();
    let calls = host.cloud.count_calls();
    let publisher = |host: &TestHost, last: u8| {
        let settings = member_settings(config.clone(), "main", QUICK);
        let formation = FormationStore::new(&host.store, "main");
        let (host, zone) = (host.host.clone(), &zone);
        async move {
            let publisher = MemberPublisher {
                host: &host,
                records: zone,
                members: vec![(settings, formation)],
                address: IpAddr::from([10, 0, 0, last]),
                pace: (PACE, sleep_for),
            };
            publisher.keep_published().await
        }
    };
    let both_publish = async || {
        tokio::select! {
            ended = publisher(&host, 4) => panic!("{ended:?}"),
            ended = publisher(&other, 5) => panic!("{ended:?}"),
            () = tokio::time::sleep(PACE * 100) => {}
        }
    };
    let written = || {
        let writes = zone.writes.lock().unwrap();
        let all = writes.iter().flatten();
        let line = |one: &AddressRecord| format!("{} {:?} {}", one.name, one.addresses, one.ttl);
        all.map(line).collect::<Vec<String>>()
    };
    both_publish().await;
    assert_eq!(written(), [format!("{name} {{10.0.0.4}} 60")]);
    // The record was changed from outside.
    let (record, foreign) = placeholder_record(&name);
    let published = || zone.published.lock().unwrap();
    published().insert(record.clone(), foreign.clone());
    both_publish().await;
    assert_eq!(written().len(), 2, "{:?}", written());
    // The volume moves, and its next instance has published the name.
    for gone in [
        "dev/nvme1n1",
        "dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0a",
    ] {
        std::fs::remove_file(host.path(gone)).unwrap();
    }
    published().insert(record.clone(), foreign.clone());
    both_publish().await;
    assert_eq!(written().len(), 2, "{:?}", written());
    assert_eq!(published().get(&record), Some(&foreign), "the last address");
    assert_eq!(host.cloud.count_calls(), calls, "calls of EC2");
}
