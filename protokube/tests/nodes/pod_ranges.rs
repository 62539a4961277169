//! Nodes get the ranges of their pods from AWS.

use crate::fakes::api::FakeApi;
use crate::fakes::aws::FakeAws;
use crate::fakes::{INSTANCE, LogLines, NAME, control_plane, running_instance};
use protokube::names::ApiServers;
use protokube::pod_ranges::{PodRangePace, PodRanges};
use protokube_role::pace::sleep_for;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OTHER: &str = "i-0123456789abcdef1";

/// The ready API servers, of which this one is `2001:db8::4`.
#[derive(Clone, Default)]
struct Servers(Arc<Mutex<BTreeSet<IpAddr>>>);

impl Servers {
    fn set(&self, ready: &[&str]) {
        *self.0.lock().unwrap() = ready.iter().map(|one| one.parse().unwrap()).collect();
    }
}

impl ApiServers for Servers {
    async fn ready_addresses(&self) -> anyhow::Result<Option<BTreeSet<IpAddr>>> {
        Ok(Some(self.0.lock().unwrap().clone()))
    }
}

async fn start_role(api: &FakeApi, aws: &FakeAws, servers: &Servers, lines: &LogLines) {
    let url = aws.start().await;
    let ec2 = control_plane(aws, &url).await;
    let (client, log, servers) = (api.new_client().await, lines.new_log(), servers.clone());
    tokio::spawn(async move {
        let role = PodRanges {
            client,
            ec2,
            cluster: NAME,
            servers: &servers,
            address: "2001:db8::4".parse().unwrap(),
            pace: PodRangePace {
                again: 1,
                idle: Duration::from_millis(10),
                sleep: sleep_for,
            },
            log: &log,
        };
        panic!("{:?}", role.assign_ranges().await);
    });
}

fn aws_with_instances(ids: &[&str]) -> FakeAws {
    let aws = FakeAws::default();
    for id in ids {
        aws.lock_state().instances.push(running_instance(id));
    }
    aws
}

fn has_range(api: &FakeApi, node: &str, range: &str) -> bool {
    let spec = &api.node_object(node)["spec"];
    spec["podCIDR"] == range && spec["podCIDRs"] == json!([range])
}

#[tokio::test]
async fn each_node_gets_the_range_of_its_instance_and_no_second_one() {
    let (api, lines, servers) = (FakeApi::new(), LogLines::default(), Servers::default());
    let aws = aws_with_instances(&[INSTANCE, OTHER]);
    // Another control plane gave the instance a range and ended before it could say so.
    let earlier = "2001:db8:0:0:7::/80";
    let known = (OTHER.to_owned(), earlier.to_owned());
    aws.lock_state().prefixes.extend([known]);
    api.put_node(INSTANCE, "False");
    api.put_node("by-hand", "True");
    servers.set(&["2001:db8::4", "2001:db8::5"]);
    start_role(&api, &aws, &servers, &lines).await;
    api.wait_until(|api| has_range(api, INSTANCE, "2001:db8:0:0:2::/80"))
        .await;
    api.put_node(OTHER, "False");
    api.wait_until(|api| has_range(api, OTHER, earlier)).await;
    assert_eq!(aws.count_calls("AssignIpv6Addresses"), 1);
    assert!(api.node_object("by-hand")["spec"]["podCIDR"].is_null());
}

#[tokio::test]
async fn one_control_plane_gives_ranges_and_waits_for_instances_that_ec2_does_not_show() {
    let (api, lines, servers) = (FakeApi::new(), LogLines::default(), Servers::default());
    let aws = aws_with_instances(&[]);
    api.put_node(INSTANCE, "False");
    servers.set(&["2001:db8::3", "2001:db8::4"]);
    start_role(&api, &aws, &servers, &lines).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(aws.count_calls("DescribeInstances"), 0, "another one's");
    servers.set(&["2001:db8::4"]);
    while !lines.all_text().contains("EC2 does not show its instance") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    aws.lock_state().instances.push(running_instance(INSTANCE));
    api.wait_until(|api| has_range(api, INSTANCE, "2001:db8:0:0:1::/80"))
        .await;
}
