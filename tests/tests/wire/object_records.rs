//! Records of Services, Ingresses and pods: read page by page, changed by set identifier, deleted with the cluster.

use crate::simulator::Simulator;
use crate::spec::{NAME, REGION};
use aws_client::record_sets::{
    ListedRecord, RecordChange, RecordContent, RecordKey, change_record_sets, list_record_sets,
};
use aws_cloud::{CloudClients, delete_object_records, object_record_names};
use node::names::dns::record_identifier;
use std::collections::BTreeMap;

/// A zone with more records than a page has, one of them with the identifier of another cluster.
const ZONE: &str = r"
dns = boto('route53')
zone = dns.create_hosted_zone(Name='example.com', CallerReference='1')['HostedZone']['Id']
record = lambda name, **more: {'Action': 'CREATE', 'ResourceRecordSet': {'Name': name + '.example.com', 'Type': 'A', 'TTL': 60, 'ResourceRecords': [{'Value': '10.0.0.1'}], **more}}
changes = [record(f'n{number:03}') for number in range(310)]
changes.append(record('shared', SetIdentifier='kctl/other.example.com', Weight=1))
changes.append(record('*.wild'))
dns.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={'Changes': changes})
print(zone.split('/')[-1])
";

fn own_record(name: &str, record_type: &str, value: &str) -> (RecordKey, RecordContent) {
    let key = RecordKey {
        name: format!("{name}.example.com"),
        record_type: record_type.to_owned(),
        identifier: Some(record_identifier(NAME)),
    };
    let content = RecordContent {
        values: [value.to_owned()].into(),
        ttl: 60,
        weight: 1,
    };
    (key, content)
}

async fn list_zone(
    clients: &CloudClients,
    zone: &str,
) -> (BTreeMap<RecordKey, ListedRecord>, usize) {
    let (mut all, mut from, mut calls) = (BTreeMap::new(), None, 0);
    loop {
        let page = list_record_sets(clients.shared_clients(), zone, from).await;
        let (page, next) = page.expect("a page");
        calls += 1;
        all.extend(page.into_iter().map(|one| (one.key.clone(), one)));
        if next.is_none() {
            return (all, calls);
        }
        from = next;
    }
}

#[tokio::test]
async fn records_with_the_clusters_identifier_are_made_changed_and_deleted_and_no_others() {
    let simulator = Simulator::start_simulator();
    let clients = simulator.cloud_clients(REGION).await;
    let printed = simulator.run_python(REGION, ZONE);
    let zone = printed.trim();
    let (before, calls) = list_zone(&clients, zone).await;
    assert_eq!(calls, 2, "a call for 300 records");
    assert!(before.keys().any(|key| key.name == "*.wild.example.com"));

    let made = [
        own_record("web", "A", "192.0.2.1"),
        own_record("shop", "CNAME", "lb.elb.amazonaws.com"),
        own_record("*.apps", "AAAA", "2001:db8::1"),
        own_record("shared", "A", "192.0.2.2"),
    ];
    let upserts = made
        .clone()
        .map(|(key, content)| RecordChange::Upsert(key, content));
    let changed = change_record_sets(clients.shared_clients(), zone, &upserts).await;
    changed.expect("records");
    let (seen, _) = list_zone(&clients, zone).await;
    for (key, content) in &made {
        assert_eq!(seen[key].content.as_ref(), Some(content), "{key:?}");
    }
    // All or nothing, and the reason is Route 53's: a record without an identifier has the name.
    let (key, content) = own_record("n001", "A", "192.0.2.9");
    let (web, other) = own_record("web", "A", "192.0.2.9");
    let wrong = [
        RecordChange::Upsert(web, other),
        RecordChange::Upsert(key, content),
    ];
    let refused = change_record_sets(clients.shared_clients(), zone, &wrong).await;
    let failure = refused.expect_err("a refusal");
    assert_eq!(failure.code, "InvalidChangeBatch", "{failure:?}");
    assert!(failure.message.contains("n001.example.com"), "{failure:?}");
    assert_eq!(list_zone(&clients, zone).await.0, seen);

    let names = object_record_names(&clients, zone, NAME).await;
    let wanted = ["*.apps", "shared", "shop", "web"];
    assert_eq!(
        names.expect("names"),
        wanted.map(|name| format!("{name}.example.com"))
    );
    let deleted = delete_object_records(&clients, zone, NAME).await;
    deleted.expect("deletions");
    assert_eq!(list_zone(&clients, zone).await.0, before);
}
