//! What AWS refuses, asked for from inside hosts with their own credentials.

use super::{CLUSTER, CONTROL_PLANES, WORKERS, only};
use anyhow::{Result, ensure};
use lab::scenario::{Credentials, Lab, Reached};
use serde_json::json;
use std::thread::sleep;
use std::time::Duration;

const STORE: &str = "kctl-lab-store";

pub fn wrong_signature(lab: &mut Lab) -> Result<()> {
    let mut caller = lab.caller(&only(lab, CONTROL_PLANES[0])?.id)?;
    let who = caller.query("sts", "GetCallerIdentity", &[])?.done()?;
    ensure!(
        who.contains(":assumed-role/masters.demo.example.com/i-"),
        "{who}"
    );
    caller.credentials.secret_access_key.push('x');
    let sts = caller.query("sts", "GetCallerIdentity", &[])?;
    ensure!(sts.refusal() == (403, "SignatureDoesNotMatch"), "{sts:?}");
    let s3 = caller.object(STORE, &format!("{CLUSTER}/config"))?;
    ensure!(s3.refusal() == (403, "SignatureDoesNotMatch"), "{s3:?}");
    // EC2 has words of its own for it.
    let ec2 = caller.query("ec2", "DescribeVolumes", &[])?;
    ensure!(ec2.refusal() == (401, "AuthFailure"), "{ec2:?}");
    Ok(())
}

pub fn lacking_action(lab: &mut Lab) -> Result<()> {
    let config = format!("{CLUSTER}/config");
    let control = lab.caller(&only(lab, CONTROL_PLANES[0])?.id)?;
    let read = control.object(STORE, &config)?.done()?;
    ensure!(read.contains("kind: Cluster"), "{read}");
    let worker = lab.caller(&only(lab, WORKERS[0])?.id)?;
    let refused = worker.object(STORE, &config)?;
    ensure!(refused.refusal() == (403, "AccessDenied"), "{refused:?}");
    let refused = worker.query("ec2", "CreateVpc", &[("CidrBlock", "10.9.0.0/16")])?;
    ensure!(
        refused.refusal() == (403, "UnauthorizedOperation"),
        "{refused:?}"
    );
    Ok(())
}

pub fn missing_tag(lab: &mut Lab) -> Result<()> {
    let host = only(lab, CONTROL_PLANES[0])?;
    let size = json!({"AvailabilityZone": host.zone, "Size": 1, "VolumeType": "gp3"});
    let made = lab.aws("ec2", "CreateVolume", &size)?;
    let volume = made["VolumeId"].as_str().unwrap();
    let attach = [
        ("VolumeId", volume),
        ("InstanceId", &host.id),
        ("Device", "/dev/xvdz"),
    ];
    let refused = lab
        .caller(&host.id)?
        .query("ec2", "AttachVolume", &attach)?;
    ensure!(
        refused.refusal() == (403, "UnauthorizedOperation"),
        "{refused:?}"
    );
    lab.aws("ec2", "DeleteVolume", &json!({"VolumeId": volume}))
        .map(drop)
}

/// What a host had early on.
pub struct Early {
    instance: String,
    credentials: Credentials,
}

pub fn early(lab: &mut Lab) -> Result<Early> {
    let instance = only(lab, CONTROL_PLANES[0])?.id;
    let credentials = lab.caller(&instance)?.credentials;
    Ok(Early {
        instance,
        credentials,
    })
}

/// Credentials of a session that has ended; the instance has newer ones by then.
pub fn expired_credential(lab: &mut Lab, early: &Early) -> Result<()> {
    let format = &time::format_description::well_known::Rfc3339;
    let end = time::OffsetDateTime::parse(&early.credentials.expiration, format)?;
    let left = end - time::OffsetDateTime::now_utc();
    sleep(left.try_into().unwrap_or(Duration::ZERO) + Duration::from_secs(1));
    let caller = lab.caller_with(&early.instance, early.credentials.clone());
    let ec2 = caller.query("ec2", "DescribeVolumes", &[])?;
    ensure!(ec2.refusal() == (400, "RequestExpired"), "{ec2:?}");
    let s3 = caller.object(STORE, &format!("{CLUSTER}/config"))?;
    ensure!(s3.refusal() == (400, "ExpiredToken"), "{s3:?}");
    let sts = caller.query("sts", "GetCallerIdentity", &[])?;
    ensure!(sts.refusal() == (403, "ExpiredToken"), "{sts:?}");
    let now = lab.caller(&early.instance)?;
    now.query("ec2", "DescribeVolumes", &[])?.done().map(drop)
}

/// kOps' rules: workers reach control planes but for etcd's ports (2380, 2381, 4001, 4002).
pub fn closed_port(lab: &mut Lab) -> Result<()> {
    let control = only(lab, CONTROL_PLANES[0])?;
    let worker = only(lab, WORKERS[0])?;
    for port in [2380, 4001] {
        lab.listen(&control.id, port)?;
        lab.until(&format!("{port} listens"), lab::scenario::LIMIT, |lab| {
            let own = lab.connect(&control.id, control.address, port)?;
            ensure!(own == Reached::Open, "it is {own:?}");
            Ok(())
        })?;
        let seen = lab.connect(&worker.id, control.address, port)?;
        ensure!(seen == Reached::Silent, "{port} is {seen:?}");
        lab.sh(&control.id, &format!("systemctl stop listen-{port}"))?;
    }
    let seen = lab.connect(&worker.id, control.address, 3988)?;
    ensure!(seen != Reached::Silent, "3988 is {seen:?}");
    // The other way everything is open: a port where nobody listens says so.
    let seen = lab.connect(&control.id, worker.address, 4001)?;
    ensure!(seen == Reached::Refused, "4001 of the worker is {seen:?}");
    Ok(())
}
