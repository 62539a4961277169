//! The lab that is killed: this test program called again. It starts a lab and launches hosts with volumes.

use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab, Settings};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write, stdout};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Name of the lab that is killed.
pub const LAB: &str = "t-downs";

/// Set in the program that is the lab.
pub const DRIVER: &str = "KCTL_LAB_TEST_DRIVER";

const DONE: &str = "all hosts work";

const HOSTS: u32 = 3;

/// Never done with it: whoever kills the lab meets processes that write.
const USER_DATA: &str = r#"#!/bin/sh
echo '{"time":"","source":"user-data","stage":"work","status":"started","detail":""}' >/dev/console
sleep 1000 &
setsid sh -c 'while :; do date >>/var/log/work; sync; done' &
mount -t tmpfs work /mnt && mkdir /mnt/deep && mount -t tmpfs deeper /mnt/deep
ip netns add pod && ip link add pod0 type veth peer name pod1 netns pod
wait
"#;

pub fn start_driver() -> Result<Child> {
    let mut program = Command::new(std::env::current_exe()?);
    program
        .args(["--exact", "downs::driver", "--ignored", "--nocapture"])
        .env(DRIVER, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    program.spawn().context("starting the lab")
}

/// Waits until all hosts work.
pub fn wait_for_hosts(driver: &mut Child) -> Result<()> {
    let out = driver.stdout.take().context("its output")?;
    for line in BufReader::new(out).lines() {
        let line = line?;
        if line == DONE {
            return Ok(());
        }
    }
    anyhow::bail!("the lab ended before all hosts worked: run `driver` with {DRIVER}=1 by hand")
}

pub fn drive_lab() -> Result<()> {
    let lab = Lab::start_lab(&Settings {
        hosts: HOSTS.try_into()?,
        ..Settings::new(LAB, env!("CARGO_BIN_EXE_lab"))
    })?;
    let subnet = network_interface(&lab)?;
    let images = lab.call_aws(
        "ec2",
        "DescribeImages",
        &json!({"Owners": ["099720109477"]}),
    )?;
    let launched = lab.call_aws(
        "ec2",
        "RunInstances",
        &json!({
            "ImageId": text_of(&images["Images"][0]["ImageId"])?,
            "InstanceType": "t3.medium",
            "MinCount": HOSTS,
            "MaxCount": HOSTS,
            "SubnetId": subnet,
            "UserData": USER_DATA,
        }),
    )?;
    let instances = launched["Instances"].as_array().context("instances")?;
    for instance in instances {
        attach_new_volume(&lab, text_of(&instance["InstanceId"])?)?;
    }
    for instance in instances {
        lab.wait_for_stage(text_of(&instance["InstanceId"])?, "user-data work started")?;
    }
    let attached = |lab: &Lab| {
        let volumes = lab.fetch_world()?.volumes;
        let states = volumes
            .iter()
            .filter_map(|volume| volume.attachment.as_ref());
        let states: Vec<&str> = states.map(|attachment| attachment.state.as_str()).collect();
        ensure!(
            states == ["attached"; HOSTS as usize],
            "they are {states:?}"
        );
        Ok(())
    };
    lab.wait_until("the volumes are attached", LIMIT, attached)?;
    writeln!(stdout(), "\n{DONE}")?;
    sleep(Duration::from_mins(10));
    Ok(())
}

fn text_of(value: &Value) -> Result<&str> {
    value
        .as_str()
        .with_context(|| format!("{value} is no text"))
}

fn network_interface(lab: &Lab) -> Result<String> {
    let vpc = lab.call_aws("ec2", "CreateVpc", &json!({"CidrBlock": "10.50.0.0/16"}))?;
    let subnet = json!({
        "VpcId": text_of(&vpc["Vpc"]["VpcId"])?,
        "CidrBlock": "10.50.1.0/24",
        "AvailabilityZone": "us-east-1a",
    });
    let subnet = lab.call_aws("ec2", "CreateSubnet", &subnet)?;
    Ok(text_of(&subnet["Subnet"]["SubnetId"])?.to_owned())
}

/// A volume for an instance, as soon as it runs.
fn attach_new_volume(lab: &Lab, instance: &str) -> Result<()> {
    let size = json!({"AvailabilityZone": "us-east-1a", "Size": 1, "VolumeType": "gp3"});
    let volume = lab.call_aws("ec2", "CreateVolume", &size)?;
    lab.wait_for_instance_state(instance, lab::aws_state::InstanceState::Running)?;
    let attach = json!({
        "VolumeId": text_of(&volume["VolumeId"])?,
        "InstanceId": instance,
        "Device": "/dev/xvdu",
    });
    lab.call_aws("ec2", "AttachVolume", &attach).map(drop)
}
