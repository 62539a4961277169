//! Names that hosts ask for.

use super::{WORKERS, only};
use anyhow::{Result, ensure};
use lab::scenario::{LIMIT, Lab};
use serde_json::json;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// How long the lab keeps a denial; Route 53's zones say 15 minutes.
pub const KEPT: Duration = Duration::from_secs(8);

const EARLY: Ipv4Addr = Ipv4Addr::new(172, 20, 9, 9);

pub fn asked_too_early(lab: &mut Lab) -> Result<()> {
    let host = only(lab, WORKERS[0])?;
    let zone = lab.aws(
        "route53",
        "CreateHostedZone",
        &json!({
            "Name": "early.example.com",
            "CallerReference": "early",
            "HostedZoneConfig": {"PrivateZone": true, "Comment": ""},
            "VPC": {"VPCRegion": "us-east-1", "VPCId": host.vpc},
        }),
    )?;
    let zone = zone["HostedZone"]["Id"].as_str().unwrap();
    record(lab, zone, "there.early.example.com")?;
    let there = |lab: &Lab| {
        let seen = lab.lookup(&host.id, "there.early.example.com")?;
        ensure!(seen == [EARLY], "it is {seen:?}");
        Ok(())
    };
    lab.until("the zone answers", LIMIT, there)?;

    let asked = Instant::now();
    ensure!(lab.lookup(&host.id, "late.early.example.com")?.is_empty());
    record(lab, zone, "late.early.example.com")?;
    record(lab, zone, "unasked.early.example.com")?;
    // Both are there for everybody who did not ask before.
    let unasked = |lab: &Lab| {
        let seen = lab.lookup(&host.id, "unasked.early.example.com")?;
        ensure!(seen == [EARLY], "it is {seen:?}");
        Ok(())
    };
    std::thread::sleep(Duration::from_secs(2));
    lab.until("the other record answers", LIMIT, unasked)?;
    let late = lab.lookup(&host.id, "late.early.example.com")?;
    // On a machine too slow to look in time there is nothing to be seen.
    if asked.elapsed() < KEPT {
        ensure!(late.is_empty(), "the denial was not kept: {late:?}");
    }
    lab.until("the denial is forgotten", LIMIT, |lab| {
        let seen = lab.lookup(&host.id, "late.early.example.com")?;
        ensure!(seen == [EARLY], "it is {seen:?}");
        Ok(())
    })?;
    ensure!(
        asked.elapsed() >= KEPT,
        "the denial was kept for {:?} only",
        asked.elapsed()
    );
    Ok(())
}

fn record(lab: &Lab, zone: &str, name: &str) -> Result<()> {
    let set = json!({"Name": name, "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": EARLY}]});
    let change = json!({"Changes": [{"Action": "CREATE", "ResourceRecordSet": set}]});
    let asked = json!({"HostedZoneId": zone, "ChangeBatch": change});
    lab.aws("route53", "ChangeResourceRecordSets", &asked)
        .map(drop)
}
