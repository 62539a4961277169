//! Names follow machines: `/etc/hosts` in place, the zone only on change.

use crate::machine::{INSTANCE, Machine, ZONE, config};
use aws::dns::{Addresses, Found};
use aws::machine::Instance;
use model::engine::Failure;
use protokube::ec2::Ec2;
use protokube::names::{Published, Records, entries, hosts_file, publish};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;
use std::time::Duration;

const PACE: Duration = Duration::from_millis(1);

fn instance(id: &str, private: &str) -> Instance {
    Instance {
        id: id.into(),
        state: "running".into(),
        private_dns_name: String::new(),
        public_dns_name: String::new(),
        addresses: BTreeSet::new(),
        private_ip: Some(private.into()),
        public_ip: Some("198.51.100.7".into()),
        zone: ZONE.into(),
        tags: BTreeMap::new(),
    }
}

#[tokio::test]
async fn members_are_named_in_the_same_file_beside_what_others_wrote() {
    let machine = Machine::new().await;
    let (config, file) = (config(), machine.path("etc/hosts"));
    let inode = file.metadata().unwrap().ino();
    machine.cloud.add_volume("vol-0a", "main");
    machine
        .cloud
        .attach_volume("vol-0a", INSTANCE, "/dev/xvdu")
        .await
        .unwrap();
    machine
        .cloud
        .instances
        .lock()
        .unwrap()
        .push(instance(INSTANCE, "10.0.0.4"));
    let name = format!("etcd-a.internal.{}", config.cluster);
    let text = || std::fs::read_to_string(&file).unwrap();
    let address = || entries(&text()).get(&name).map(ToString::to_string);
    let follows = async {
        while address().as_deref() != Some("10.0.0.4") {
            tokio::time::sleep(PACE).await;
        }
        std::fs::write(&file, format!("{}10.9.9.9 mine\n", text())).unwrap();
        machine.cloud.instances.lock().unwrap()[0] = instance(INSTANCE, "10.0.0.5");
        while address().as_deref() != Some("10.0.0.5") {
            tokio::time::sleep(PACE).await;
        }
        // Its machine is gone, and no other has the volume yet.
        machine.cloud.volumes.lock().unwrap()[0].attachment = None;
        tokio::time::sleep(PACE * 20).await;
    };
    tokio::select! {
        ended = hosts_file(&machine.host, &*machine.cloud, &config, PACE) => panic!("{ended:?}"),
        () = follows => {}
    }
    assert_eq!(address().as_deref(), Some("10.0.0.5"));
    assert!(text().contains("127.0.0.1 localhost\n") && text().contains("10.9.9.9 mine\n"));
    assert_eq!(file.metadata().unwrap().ino(), inode);
}

/// A zone in memory.
#[derive(Default)]
struct Zone {
    published: Mutex<Published>,
    writes: Mutex<Vec<Vec<Addresses>>>,
}

impl Records for Zone {
    async fn read(&self, names: &[String]) -> Result<Published, Failure> {
        let all = self.published.lock().unwrap();
        let of = names
            .iter()
            .filter_map(|name| Some((name.clone(), all.get(name)?.clone())));
        Ok(of.collect())
    }

    async fn write(&self, names: &[Addresses]) -> Result<(), Failure> {
        self.writes.lock().unwrap().push(names.to_vec());
        let found = names
            .iter()
            .map(|one| (one.name.clone(), Found::Addresses(one.clone())));
        self.published.lock().unwrap().extend(found);
        Ok(())
    }
}

#[tokio::test]
async fn the_zone_is_written_when_machines_change_and_never_emptied() {
    let machine = Machine::new().await;
    let (config, zone) = (config(), Zone::default());
    let placeholder = |name: &str| {
        let addresses = Addresses {
            name: name.into(),
            addresses: ["203.0.113.123".parse().unwrap()].into(),
            ttl: 10,
        };
        (name.to_owned(), Found::Addresses(addresses))
    };
    let names = ["api", "api.internal", "kops-controller.internal"];
    let names = names.map(|name| format!("{name}.{}", config.cluster));
    let placeholders = names.each_ref().map(|name| placeholder(name));
    zone.published.lock().unwrap().extend(placeholders);
    let writes = || zone.writes.lock().unwrap().len();
    let follows = async {
        // No control plane runs yet: the placeholders stay.
        tokio::time::sleep(PACE * 20).await;
        assert_eq!(writes(), 0);
        machine
            .cloud
            .instances
            .lock()
            .unwrap()
            .push(instance(INSTANCE, "10.0.0.4"));
        while writes() == 0 {
            tokio::time::sleep(PACE).await;
        }
        tokio::time::sleep(PACE * 60).await;
        assert_eq!(writes(), 1, "at rest");
        machine.cloud.instances.lock().unwrap().clear();
        tokio::time::sleep(PACE * 60).await;
        assert_eq!(
            writes(),
            1,
            "no machine is left, and the names keep their addresses"
        );
    };
    tokio::select! {
        ended = publish(&*machine.cloud, &zone, &config, PACE) => panic!("{ended:?}"),
        () = follows => {}
    }
    let mut written = zone.writes.lock().unwrap()[0].clone();
    written.sort_by(|one, other| one.name.cmp(&other.name));
    let said: Vec<String> = written
        .iter()
        .map(|one| format!("{} {:?} {}", one.name, one.addresses, one.ttl))
        .collect();
    assert_eq!(
        said,
        [
            format!("{} {{198.51.100.7}} 60", names[0]),
            format!("{} {{10.0.0.4}} 60", names[1]),
            format!("{} {{10.0.0.4}} 60", names[2]),
        ]
    );
}
