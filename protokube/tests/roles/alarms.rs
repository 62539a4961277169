//! An alarm of etcd ends neither etcd nor the start of the control plane. And members are asked at addresses that protokube knows.

use crate::test_host::{TestHost, node_config};
use etcd_member::{EtcdGateway, EtcdHttp, EtcdMaintenance, EtcdPeer, EtcdQuorum, RunningEtcd};
use etcd_rules::{ListedMember, RunningMember};
use node::components::{EtcdMemberNames, EtcdStart, etcd_ports};
use node::manifests::{ETCD_SERVES, EtcdPod, build_etcd_pod};
use protokube_role::probe::Probe;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The answer of etcd 3.5 and 3.6 at `/health` (server/etcdserver/api/etcdhttp/health.go): alarms that are not excluded come first, then
/// whether there is a leader, unless only local data is requested.
fn health_answer(target: &str, alarms: &[&str], leader: bool) -> (u16, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parameters: Vec<(&str, &str)> = query
        .split('&')
        .filter_map(|one| one.split_once('='))
        .collect();
    let excluded = |alarm: &&&str| parameters.contains(&("exclude", **alarm));
    let serializable = parameters.contains(&("serializable", "true"));
    let alarm = alarms.iter().find(|alarm| !excluded(alarm));
    let reason = match alarm {
        Some(alarm) => format!("ALARM {alarm}"),
        None if !serializable && !leader => "RAFT NO LEADER".to_owned(),
        None => String::new(),
    };
    let (status, well) = if reason.is_empty() {
        (200, true)
    } else {
        (503, false)
    };
    if path != "/health" {
        return (404, String::new());
    }
    (
        status,
        format!("{{\"health\":\"{well}\",\"reason\":\"{reason}\"}}\n"),
    )
}

/// Starts an etcd with these alarms and returns its client.
async fn etcd_with(alarms: &'static [&'static str], leader: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&request[..read]).into_owned();
            let target = text.split(' ').nth(1).unwrap_or_default();
            let (status, body) = health_answer(target, alarms, leader);
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

async fn etcd_with_alarms(alarms: &'static [&'static str], leader: bool) -> EtcdHttp {
    let host = TestHost::new().await;
    let etcd = node_config().control_plane.unwrap().etcd[0].clone();
    EtcdHttp {
        probe: Probe::new().unwrap(),
        health: etcd_with(alarms, leader).await,
        peer: EtcdPeer {
            host: host.host.clone(),
            certificates: String::new(),
            names: EtcdMemberNames::from_config(&etcd, &node_config().cluster),
            address: "127.0.0.1".parse().unwrap(),
            port: 2380,
        },
    }
}

#[tokio::test]
async fn a_member_under_an_alarm_serves() {
    for alarm in ["NOSPACE", "CORRUPT"] {
        let alarms: &'static [&'static str] = if alarm == "NOSPACE" {
            &["NOSPACE"]
        } else {
            &["CORRUPT"]
        };
        let member = etcd_with_alarms(alarms, true).await;
        assert_eq!(member.find_problem().await, None, "{alarm}");
        assert!(member.is_answering().await);
    }
    let well = etcd_with_alarms(&[], true).await;
    assert_eq!(well.find_problem().await, None);
}

#[tokio::test]
async fn a_member_without_a_leader_does_not_serve() {
    let problem = etcd_with_alarms(&["NOSPACE"], false)
        .await
        .find_problem()
        .await;
    assert!(problem.unwrap().contains("NO LEADER"));
}

/// kubelet kills a container that fails these probes; an alarm concerns every member.
#[test]
fn no_alarm_and_no_lost_leader_has_kubelet_end_etcd() {
    let cluster = node_config().control_plane.unwrap().etcd[0].clone();
    let pod = build_etcd_pod(&EtcdPod {
        etcd: &cluster,
        names: &EtcdMemberNames::from_config(&cluster, "x"),
        ports: etcd_ports("main").unwrap(),
        member: "a",
        start: &EtcdStart::Existing,
        data: "/data",
    });
    let container = &pod.spec.containers[0];
    for probe in [&container.liveness_probe, &container.startup_probe] {
        let path = &probe.as_ref().unwrap().http_get.path;
        for leader in [true, false] {
            let (status, body) = health_answer(path, &["NOSPACE", "CORRUPT"], leader);
            assert_eq!(status, 200, "{path}: {body}");
        }
    }
    assert_eq!(
        health_answer(ETCD_SERVES, &["NOSPACE", "CORRUPT"], true).0,
        200
    );
    assert_eq!(health_answer(ETCD_SERVES, &[], false).0, 503);
}

#[tokio::test]
async fn etcd_is_not_asked_for_members_before_it_can_look_up_their_names() {
    let test = TestHost::new().await;
    let etcd = node_config().control_plane.unwrap().etcd[0].clone();
    let names = EtcdMemberNames::from_config(&etcd, &node_config().cluster);
    let name = names.member_host("a");
    let peer = EtcdPeer {
        host: test.host.clone(),
        certificates: "/certificates".to_owned(),
        names,
        address: "127.0.0.1".parse().unwrap(),
        port: 1,
    };
    let member = EtcdHttp {
        probe: Probe::new().unwrap(),
        health: String::new(),
        peer,
    };
    let why = async || format!("{:#}", member.list_members("a").await.unwrap_err());
    assert!(why().await.ends_with("the name is not in /etc/hosts yet"));
    write_member_host(&test, &name);
    assert!(why().await.contains("/certificates/"));
}

/// DNS would keep for minutes that a name does not exist yet.
#[tokio::test]
async fn other_members_are_asked_at_their_addresses_in_the_file_of_hosts() {
    let test = TestHost::new().await;
    let etcd = node_config().control_plane.unwrap().etcd[0].clone();
    let names = EtcdMemberNames::from_config(&etcd, &node_config().cluster);
    let own = RunningMember {
        id: "1".to_owned(),
        members: vec![ListedMember {
            id: "2".to_owned(),
            name: names.member_name("b"),
            learner: false,
        }],
        ..RunningMember::default()
    };
    let name = names.member_host("b");
    let gateway = EtcdGateway {
        host: test.host.clone(),
        certificates: "/certificates".to_owned(),
        name: names.member_host("a"),
        address: "127.0.0.1".parse().unwrap(),
        port: 1,
        names,
        quota: None,
    };
    let refusals = async || {
        let live = gateway.list_live_members(&["b".to_owned()]).await;
        let mut others = gateway.describe_others(&own).await;
        let other = others.remove(0).says.unwrap_err();
        [format!("{:#}", live.unwrap_err()), other]
    };
    for why in refusals().await {
        assert!(why.contains("is not in /etc/hosts yet"), "{why}");
    }
    write_member_host(&test, &name);
    for why in refusals().await {
        assert!(why.contains("/certificates/"), "{why}");
    }
}

fn write_member_host(test: &TestHost, name: &str) {
    let text = format!(
        "# Begin host entries managed by protokube\n127.0.0.1 {name}\n# End host entries managed by protokube\n"
    );
    test.host.write_changed("/etc/hosts", &text, 0o644).unwrap();
}
