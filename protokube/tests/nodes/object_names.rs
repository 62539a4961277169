//! Names of Services, Ingresses and pods follow the objects, and the records of others stay.

use crate::fakes::LogLines;
use crate::fakes::api::FakeApi;
use crate::store::store_in;
use aws_client::record_sets::{ListedRecord, RecordChange, RecordContent, RecordKey, RecordPage};
use aws_client::store::Expect;
use engine::{Class, Failure};
use full::iam::role_policy;
use node::config::Role;
use protokube::names::ApiServers;
use protokube::object_names::{
    NamedObjects, ObjectNames, ObjectNamesSettings, ProblemLog, PublishPace, RecordSets,
    read_settings,
};
use protokube_role::log::RoleLog;
use protokube_role::pace::sleep_for;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use test_support::{expanded_with_fields, node_config_of};

const OWN: &str = "kctl/a.example.com";
const OWN_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 4));
const EXTERNAL: &str = "dns.alpha.kubernetes.io/external";
const INTERNAL: &str = "dns.alpha.kubernetes.io/internal";
const SERVICE: &str = "/api/v1/services/web";
const INGRESS: &str = "/apis/networking.k8s.io/v1/ingresses/shop";

type Records = BTreeMap<RecordKey, RecordContent>;

#[derive(Default)]
struct ZoneState {
    records: Records,
    pages: usize,
    writes: Vec<Vec<RecordChange>>,
    /// Whoever writes is killed before the answer comes.
    hangs: bool,
}

/// A hosted zone with the rules of Route 53 that matter here.
#[derive(Clone, Default)]
struct FakeZone(Arc<Mutex<ZoneState>>);

fn make_key(name: &str, record_type: &str, identifier: Option<&str>) -> RecordKey {
    RecordKey {
        name: name.to_owned(),
        record_type: record_type.to_owned(),
        identifier: identifier.map(str::to_owned),
    }
}

fn make_content(values: &[&str]) -> RecordContent {
    RecordContent {
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        ttl: 60,
        weight: 1,
    }
}

fn refusal(why: &str) -> Failure {
    Failure {
        class: Class::Invalid,
        call: "route53:ChangeResourceRecordSets".into(),
        code: "InvalidChangeBatch".into(),
        message: why.into(),
        hint: None,
        request_id: None,
    }
}

/// The records after a change.
fn change_records(records: &mut Records, change: &RecordChange) -> Result<(), Failure> {
    match change {
        RecordChange::Delete(key, content) if records.get(key) == Some(content) => {
            records.remove(key);
        }
        RecordChange::Delete(key, _) => {
            return Err(refusal(&format!("{} is not as it was", key.name)));
        }
        RecordChange::Upsert(key, content) => {
            let of_name = |other: &&RecordKey| other.name == key.name;
            let mut others = records.keys().filter(of_name);
            let conflicts = |other: &RecordKey| {
                let same = other.record_type == key.record_type;
                let cname = [other, key].iter().any(|one| one.record_type == "CNAME");
                (same && other.identifier.is_none()) || (!same && cname)
            };
            if others.any(conflicts) || key.name.contains("refused") {
                return Err(refusal(&format!("{} conflicts", key.name)));
            }
            records.insert(key.clone(), content.clone());
        }
    }
    Ok(())
}

impl RecordSets for FakeZone {
    async fn list_page(&self, from: Option<RecordKey>) -> Result<RecordPage, Failure> {
        let mut state = self.0.lock().unwrap();
        state.pages += 1;
        let all = state.records.iter();
        let listed = all.map(|(key, content)| ListedRecord {
            key: key.clone(),
            content: Some(content.clone()),
        });
        let mut page: Vec<ListedRecord> = listed
            .filter(|record| from.as_ref().is_none_or(|from| record.key >= *from))
            .collect();
        let rest = page.split_off(page.len().min(4));
        Ok((page, rest.first().map(|record| record.key.clone())))
    }

    async fn change(&self, changes: &[RecordChange]) -> Result<(), Failure> {
        let hangs = {
            let mut state = self.0.lock().unwrap();
            let mut records = state.records.clone();
            for change in changes {
                change_records(&mut records, change)?;
            }
            state.records = records;
            state.writes.push(changes.to_vec());
            state.hangs
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

impl FakeZone {
    fn new() -> Self {
        let zone = Self::default();
        zone.put(make_key("example.com", "SOA", None), &["ns"]);
        zone.put(make_key("example.com", "NS", None), &["ns"]);
        zone
    }

    fn put(&self, key: RecordKey, values: &[&str]) {
        let mut state = self.0.lock().unwrap();
        state.records.insert(key, make_content(values));
    }

    /// What a name leads to with the cluster's identifier, as `TYPE VALUE ...`.
    fn own(&self, name: &str) -> Vec<String> {
        let state = self.0.lock().unwrap();
        let all = state.records.iter();
        let own = all.filter(|(key, _)| key.name == name && key.identifier.as_deref() == Some(OWN));
        let text = |(key, content): (&RecordKey, &RecordContent)| {
            let values: Vec<&str> = content.values.iter().map(String::as_str).collect();
            format!("{} {}", key.record_type, values.join(" "))
        };
        own.map(text).collect()
    }

    fn writes(&self) -> usize {
        self.0.lock().unwrap().writes.len()
    }

    async fn becomes(&self, name: &str, wanted: &[&str]) {
        for _ in 0..500 {
            if self.own(name) == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{name} is {:?}, not {wanted:?}", self.own(name));
    }
}

/// The ready API servers; `None`: this one is not.
#[derive(Clone, Default)]
struct Servers(Arc<Mutex<Option<BTreeSet<IpAddr>>>>);

impl Servers {
    fn set(&self, ready: &[u8]) {
        let ready = ready.iter().map(|last| IpAddr::from([10, 0, 0, *last]));
        *self.0.lock().unwrap() = Some(ready.collect());
    }
}

impl ApiServers for Servers {
    async fn ready_addresses(&self) -> anyhow::Result<Option<BTreeSet<IpAddr>>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

struct Fixture {
    api: FakeApi,
    zone: FakeZone,
    servers: Servers,
    lines: LogLines,
    role: tokio::task::JoinHandle<()>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.role.abort();
    }
}

async fn start(api: &FakeApi, zone: &FakeZone) -> Fixture {
    let servers = Servers::default();
    servers.set(&[4, 5]);
    let lines = LogLines::default();
    let (log, client) = (lines.new_log(), api.new_client().await);
    let (records, ready) = (zone.clone(), servers.clone());
    let role = tokio::spawn(async move {
        let names = ObjectNames {
            objects: NamedObjects {
                client,
                watch_ingress: true,
                namespace: None,
            },
            servers: &ready,
            records: &records,
            settings: ObjectNamesSettings {
                zone: "Z1".into(),
                identifier: OWN.into(),
                watch_ingress: true,
                namespace: None,
                reserved: ["api.a.example.com".to_owned()].into(),
            },
            address: OWN_ADDRESS,
            role_log: &RoleLog::with_log(log.clone(), "object-names"),
            problems: &ProblemLog::new(log, "object-names"),
            pace: PublishPace {
                look: Duration::from_millis(1),
                call: Duration::from_millis(1),
                idle: Duration::from_millis(1),
                sleep: sleep_for,
            },
        };
        let ended = names.keep_published().await;
        panic!("{ended:?}");
    });
    Fixture {
        api: api.clone(),
        zone: zone.clone(),
        servers,
        lines,
        role,
    }
}

fn metadata(name: &str, created: &str, annotations: &Value) -> Value {
    json!({"name": name, "namespace": "shop", "creationTimestamp": created, "annotations": annotations})
}

/// A Service of type LoadBalancer with these names, and its load balancer.
fn balanced_service(names: &str, balancer: Option<&str>) -> Value {
    let ends: Vec<Value> = balancer
        .iter()
        .map(|name| json!({"hostname": name}))
        .collect();
    json!({
        "metadata": metadata("web", "2026-01-01T00:00:00Z", &json!({EXTERNAL: names})),
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": ends}},
    })
}

#[tokio::test]
async fn the_names_of_a_service_follow_its_load_balancer_and_go_with_it() {
    let (api, zone) = (FakeApi::new(), FakeZone::new());
    api.put_whole(
        SERVICE,
        balanced_service("web.example.com, *.web.example.com", None),
    );
    let role = start(&api, &zone).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(zone.writes(), 0, "it has no load balancer yet");
    let with = |name| balanced_service("web.example.com, *.web.example.com", Some(name));
    role.api.put_whole(SERVICE, with("one.elb.amazonaws.com"));
    zone.becomes("web.example.com", &["CNAME one.elb.amazonaws.com"])
        .await;
    zone.becomes("*.web.example.com", &["CNAME one.elb.amazonaws.com"])
        .await;
    assert_eq!(zone.writes(), 1, "both in one call");
    // The load balancer is replaced: the names keep what they have until there is another.
    role.api
        .put_whole(SERVICE, balanced_service("web.example.com", None));
    zone.becomes("*.web.example.com", &[]).await;
    assert_eq!(zone.own("web.example.com"), ["CNAME one.elb.amazonaws.com"]);
    role.api.put_whole(SERVICE, with("two.elb.amazonaws.com"));
    zone.becomes("web.example.com", &["CNAME two.elb.amazonaws.com"])
        .await;
    role.api.remove_object(SERVICE);
    zone.becomes("web.example.com", &[]).await;
    assert_eq!(zone.own("*.web.example.com"), [""; 0]);
    assert!(
        role.lines
            .all_text()
            .contains("web.example.com CNAME deleted")
    );
}

#[tokio::test]
async fn node_ports_lead_to_workers_pods_to_their_nodes_and_ingresses_to_their_load_balancers() {
    let (api, zone) = (FakeApi::new(), FakeZone::new());
    let node = |last: u8, labels: Value| {
        json!({
            "metadata": {"name": format!("i-{last}"), "labels": labels},
            "status": {"addresses": [
                {"type": "InternalIP", "address": format!("10.0.0.{last}")},
                {"type": "ExternalIP", "address": format!("198.51.100.{last}")},
            ]},
        })
    };
    api.put_whole(
        "/api/v1/nodes/i-4",
        node(4, json!({"node-role.kubernetes.io/control-plane": ""})),
    );
    for last in [5, 6] {
        api.put_whole(
            &format!("/api/v1/nodes/i-{last}"),
            node(last, json!({"node-role.kubernetes.io/node": ""})),
        );
    }
    for (name, annotation) in [("outside", EXTERNAL), ("inside", INTERNAL)] {
        let names = json!({annotation: format!("{name}.example.com")});
        let service = json!({"metadata": metadata(name, "2026-01-01T00:00:00Z", &names), "spec": {"type": "NodePort"}});
        api.put_whole(&format!("/api/v1/services/{name}"), service);
    }
    for (name, last) in [("one", 5), ("two", 6)] {
        let names = json!({EXTERNAL: "pods.example.com", INTERNAL: "pods.internal.example.com"});
        let pod = json!({
            "metadata": metadata(name, "2026-01-01T00:00:00Z", &names),
            "spec": {"hostNetwork": true, "nodeName": format!("i-{last}"), "containers": []},
            "status": {"podIP": format!("10.0.0.{last}")},
        });
        api.put_whole(&format!("/api/v1/pods/{name}"), pod);
    }
    let ingress = json!({
        "metadata": metadata("shop", "2026-01-01T00:00:00Z", &json!({})),
        "spec": {"rules": [{"host": "shop.example.com"}, {}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]}},
    });
    api.put_whole(INGRESS, ingress);
    let role = start(&api, &zone).await;
    zone.becomes("outside.example.com", &["A 198.51.100.5 198.51.100.6"])
        .await;
    zone.becomes("inside.example.com", &["A 10.0.0.5 10.0.0.6"])
        .await;
    zone.becomes("pods.example.com", &["A 198.51.100.5 198.51.100.6"])
        .await;
    zone.becomes("pods.internal.example.com", &["A 10.0.0.5 10.0.0.6"])
        .await;
    zone.becomes("shop.example.com", &["A 192.0.2.1 192.0.2.2"])
        .await;
    // A worker leaves, and so does the pod on it.
    role.api.remove_object("/api/v1/pods/two");
    role.api.remove_object("/api/v1/nodes/i-6");
    zone.becomes("outside.example.com", &["A 198.51.100.5"])
        .await;
    zone.becomes("pods.example.com", &["A 198.51.100.5"]).await;
    zone.becomes("pods.internal.example.com", &["A 10.0.0.5"])
        .await;
}

#[tokio::test]
async fn records_of_others_stay_and_no_bad_name_blocks_a_good_one() {
    let (api, zone) = (FakeApi::new(), FakeZone::new());
    let foreign = [
        make_key("taken.example.com", "A", None),
        make_key("shared.example.com", "CNAME", Some("kctl/b.example.com")),
        make_key("mail.example.com", "MX", None),
    ];
    for key in &foreign {
        zone.put(key.clone(), &["of others"]);
    }
    let names = "taken.example.com, shared.example.com, mail.example.com, elsewhere.org, no name, refused.example.com, \
                 api.a.example.com, example.com, web.example.com";
    api.put_whole(SERVICE, balanced_service(names, Some("lb")));
    let mut younger = balanced_service("web.example.com", Some("other"));
    younger["metadata"]["name"] = json!("younger");
    younger["metadata"]["creationTimestamp"] = json!("2026-02-01T00:00:00Z");
    api.put_whole("/api/v1/services/younger", younger);
    let role = start(&api, &zone).await;
    zone.becomes("web.example.com", &["CNAME lb"]).await;
    // Everything is said once, and nothing that was refused is tried again while nothing changes.
    tokio::time::sleep(Duration::from_millis(800)).await;
    let (writes, pages) = (zone.writes(), zone.0.lock().unwrap().pages);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(
        (zone.writes(), zone.0.lock().unwrap().pages),
        (writes, pages)
    );
    let text = role.lines.all_text();
    for line in [
        "taken.example.com: the zone has a record A that this cluster did not make",
        "shared.example.com: the zone has a record CNAME that this cluster did not make",
        "mail.example.com: the zone has a record MX that this cluster did not make",
        "Service shop/web does not get the name elsewhere.org: it is not in the cluster's hosted zone example.com",
        "does not get the name no name: it is not a DNS name",
        "does not get the name api.a.example.com: kctl publishes this name itself",
        "does not get the name example.com: it is the name of the zone",
        "refused.example.com: Route 53 refuses the record",
        "Service shop/younger does not get the name web.example.com: it belongs to Service shop/web",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{line} in {text}");
    }
    role.api.remove_object(SERVICE);
    zone.becomes("web.example.com", &["CNAME other"]).await;
    let state = zone.0.lock().unwrap();
    for key in &foreign {
        assert_eq!(state.records.get(key), Some(&make_content(&["of others"])));
    }
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_write_leaves_nothing_that_the_next_one_does_not_know() {
    let (api, zone) = (FakeApi::new(), FakeZone::new());
    api.put_whole(SERVICE, balanced_service("web.example.com", Some("lb")));
    zone.0.lock().unwrap().hangs = true;
    let killed = start(&api, &zone).await;
    zone.becomes("web.example.com", &["CNAME lb"]).await;
    drop(killed);
    zone.0.lock().unwrap().hangs = false;
    // The object has gone meanwhile, and somebody has changed the record by hand.
    zone.put(
        make_key("web.example.com", "CNAME", Some(OWN)),
        &["by hand"],
    );
    zone.put(make_key("left.example.com", "A", Some(OWN)), &["10.0.0.9"]);
    let next = start(&api, &zone).await;
    zone.becomes("web.example.com", &["CNAME lb"]).await;
    zone.becomes("left.example.com", &[]).await;
    drop(next);
    api.remove_object(SERVICE);
    let last = start(&api, &zone).await;
    zone.becomes("web.example.com", &[]).await;
    assert_eq!(last.zone.0.lock().unwrap().records.len(), 2, "SOA and NS");
}

#[tokio::test]
async fn one_control_plane_publishes_and_route_53_is_called_only_for_changes() {
    let (api, zone) = (FakeApi::new(), FakeZone::new());
    for number in 0..5 {
        zone.put(
            make_key(&format!("n{number}.example.com"), "A", None),
            &["10.0.0.1"],
        );
    }
    api.put_whole(SERVICE, balanced_service("web.example.com", Some("lb")));
    let role = start(&api, &zone).await;
    zone.becomes("web.example.com", &["CNAME lb"]).await;
    let calls = || {
        let state = zone.0.lock().unwrap();
        (state.pages, state.writes.len())
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(calls(), (2, 1), "two pages of the zone and one write");
    // What matters to nobody changes: no call.
    for number in 0..5 {
        let mut service = balanced_service("web.example.com", Some("lb"));
        service["metadata"]["labels"] = json!({"number": number.to_string()});
        role.api.put_whole(SERVICE, service);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(calls(), (2, 1));
    // Another control plane is the first, or the own API server is not ready.
    for ready in [Some(&[3, 4][..]), None] {
        match ready {
            Some(ready) => role.servers.set(ready),
            None => *role.servers.0.lock().unwrap() = None,
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = calls();
        role.api
            .put_whole(SERVICE, balanced_service("web.example.com", Some("new")));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(calls(), before);
    }
    role.servers.set(&[4, 5]);
    zone.becomes("web.example.com", &["CNAME new"]).await;
}

/// kctl gives permissions by the full spec, and protokube reads the completed one.
#[tokio::test]
async fn protokube_publishes_what_kctl_has_given_permissions_for() {
    let public = json!({"dns": {"type": "Public"}});
    for fields in [
        json!({}),
        json!({"externalDns": {"watchIngress": true, "watchNamespace": "shop"}}),
        json!({"externalDns": {"watchIngress": false, "watchNamespace": ""}}),
        json!({"externalDns": {"disable": true}}),
        json!({"externalDns": {"provider": "none"}}),
        json!({"externalDns": {"provider": "external-dns"}}),
        json!({"masterPublicName": "API.example.com"}),
        json!({"topology": {"dns": {"type": "None"}}}),
    ] {
        let mut all = json!({"topology": public, "dnsZone": "Z0123456789ABC"});
        let given = fields.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(given);
        let expanded = expanded_with_fields(&all);
        let folder = tempfile::tempdir().unwrap();
        let store = store_in(folder.path()).await;
        let text = serde_json::to_vec(&expanded.cluster).unwrap();
        let put = store.put("cluster-completed.spec", text, Expect::Absent);
        put.await.unwrap();
        let config = node_config_of(&expanded.full, Role::ControlPlane, "");
        let settings = read_settings(&store, &config).await.unwrap();
        let wanted = expanded.full.dns.object_names;
        let ingress = settings.as_ref().map(|settings| settings.watch_ingress);
        assert_eq!(ingress, wanted.map(|names| names.watch_ingress), "{fields}");
        let Some(settings) = settings else { continue };
        assert_eq!(settings.identifier, OWN);
        assert_eq!(settings.zone, "Z0123456789ABC");
        let namespace = fields["externalDns"]["watchNamespace"].as_str();
        let namespace = namespace.filter(|one| !one.is_empty());
        assert_eq!(settings.namespace.as_deref(), namespace);
        let policy = role_policy(&expanded.full, Role::ControlPlane).unwrap();
        let conditions = policy["Statement"].as_array().unwrap().iter();
        let key = "route53:ChangeResourceRecordSetsNormalizedRecordNames";
        let mut kept = conditions.map(|one| &one["Condition"]["ForAllValues:StringNotEquals"][key]);
        let kept = kept.find(|names| names.is_array()).unwrap();
        assert_eq!(*kept, json!(settings.reserved), "{fields}");
    }
}
