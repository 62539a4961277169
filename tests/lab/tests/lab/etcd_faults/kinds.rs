//! All kinds of faults: of machines, programs, the network and AWS here, of disks and data in [`super::disks`] and [`super::losses`],
//! of programs that systemd starts again in [`super::supervised`].

use super::back::{ControlPlane, find_leader, running};
use super::schedule::{Chance, Due, Fault};
use super::{disks, losses, supervised};
use anyhow::{Context, Result, ensure};
use lab::network::faults::Partition;
use lab::scenario::Lab;
use serde_json::{Value, json};
use std::time::Duration;

pub struct Kind {
    pub name: &'static str,
    /// Over soon, and nothing is left of it: also in `make test`.
    pub quick: bool,
    /// Ends by itself whatever happened before: may be the second of a pair.
    pub second: bool,
    /// Chooses the victims.
    pub prepare: fn(&Lab, &mut Chance) -> Result<Fault>,
}

const fn kind(
    name: &'static str,
    quick: bool,
    second: bool,
    prepare: fn(&Lab, &mut Chance) -> Result<Fault>,
) -> Kind {
    Kind {
        name,
        quick,
        second,
        prepare,
    }
}

pub const KINDS: [Kind; 21] = [
    kind("power-one", true, true, |lab, chance| {
        cut_power(lab, chance, 1)
    }),
    kind("power-two", true, true, |lab, chance| {
        cut_power(lab, chance, 2)
    }),
    kind("power-three", true, true, |lab, chance| {
        cut_power(lab, chance, 3)
    }),
    kind("terminated", false, false, terminate),
    kind("etcd-killed", true, true, |lab, chance| {
        run_in_one(lab, chance, "pkill -KILL -x etcd")
    }),
    kind("protokube-killed", true, true, |lab, chance| {
        run_in_one(
            lab,
            chance,
            "systemctl kill --signal=KILL --kill-whom=main protokube",
        )
    }),
    kind("containerd-killed", true, false, |lab, chance| {
        supervised::kill_unit(lab, chance, "containerd.service")
    }),
    kind("kubelet-killed", true, false, |lab, chance| {
        supervised::kill_unit(lab, chance, "kubelet.service")
    }),
    kind("one-cut-off", true, true, |lab, chance| {
        let victim = choose_one(lab, chance)?;
        cut_off(chance, Partition::Host(victim.id))
    }),
    kind("leader-cut-off", true, true, |lab, chance| {
        cut_off(chance, Partition::Host(find_leader(lab)?.id))
    }),
    kind("inbound-lost", false, true, |lab, chance| {
        let victim = choose_one(lab, chance)?;
        cut_off(chance, Partition::Inbound(victim.id))
    }),
    kind("outbound-lost", false, true, |lab, chance| {
        let victim = choose_one(lab, chance)?;
        cut_off(chance, Partition::Outbound(victim.id))
    }),
    kind("volume-full", false, false, disks::fill_volume),
    kind("root-full", false, false, disks::fill_root),
    kind("disk-slow", false, false, disks::slow_down),
    kind("attached-late", false, false, attach_late),
    kind("volume-lost", false, false, losses::delete_volume),
    kind("log-lost", false, false, losses::remove_log),
    kind("ec2-away", true, false, |lab, chance| {
        lose_aws(lab, chance, "ec2")
    }),
    kind("s3-away", true, false, |lab, chance| {
        lose_aws(lab, chance, "s3")
    }),
    kind("volumes-stale", false, false, show_old_volumes),
];

/// One of the control planes that run.
pub fn choose_one(lab: &Lab, chance: &mut Chance) -> Result<ControlPlane> {
    let mut one = chance.choose(running(lab)?, 1);
    one.pop().context("no control plane runs")
}

/// Hosts crash at once, and each starts again after a while of its own.
fn cut_power(lab: &Lab, chance: &mut Chance, count: usize) -> Result<Fault> {
    let victims = chance.choose(running(lab)?, count);
    ensure!(!victims.is_empty(), "no control plane runs");
    let off: Vec<f64> = victims.iter().map(|_| chance.between(0.0, 15.0)).collect();
    Ok(Box::new(move |lab| {
        let ids: Vec<&str> = victims.iter().map(|one| one.id.as_str()).collect();
        lab.kill_all(&ids)?;
        let start = |(victim, after): (ControlPlane, f64)| {
            Due::once(after, move |lab| {
                if lab.is_on(&victim.id)? {
                    return Ok(());
                }
                lab.start_host(&victim.id)
            })
        };
        Ok(victims.into_iter().zip(off).map(start).collect())
    }))
}

/// The request that ends an instance, whose group launches another.
pub fn end_instance(lab: &Lab, id: &str) -> Result<()> {
    lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": [id]}))
        .map(drop)
}

fn terminate(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    Ok(Box::new(move |lab| {
        end_instance(lab, &victim.id)?;
        Ok(Vec::new())
    }))
}

fn run_in_one(lab: &Lab, chance: &mut Chance, script: &'static str) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    Ok(Box::new(move |lab| {
        lab.run_script(&victim.id, script)?;
        Ok(Vec::new())
    }))
}

fn cut_off(chance: &mut Chance, what: Partition) -> Result<Fault> {
    let after = chance.between(5.0, 40.0);
    let (Partition::Host(id) | Partition::Inbound(id) | Partition::Outbound(id)) = what.clone()
    else {
        anyhow::bail!("{what:?} is of no single host");
    };
    Ok(Box::new(move |lab| {
        lab.partition_host(&what)?;
        Ok(vec![Due::once(after, move |lab| lab.heal_host(&id))])
    }))
}

/// A service of AWS answers only errors, and a control plane that crashed has to come back meanwhile.
fn lose_aws(lab: &Lab, chance: &mut Chance, service: &'static str) -> Result<Fault> {
    let faults: Value =
        json!([{"service": service, "times": 1_000_000, "code": "Unavailable", "status": 503}]);
    let away = Duration::from_secs(chance.away).as_secs_f64();
    let crash = cut_power(lab, chance, 1)?;
    Ok(Box::new(move |lab| {
        let mut due = crash(lab)?;
        lab.set_faults(&faults)?;
        due.push(Due::once(away, |lab| lab.set_faults(&json!([]))));
        Ok(due)
    }))
}

/// The volumes of a replacement reach it up to a minute after it asked for them.
fn attach_late(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    let delay = Duration::from_secs_f64(chance.between(0.0, 60.0));
    Ok(Box::new(move |lab| {
        lab.delay_attachments(delay)?;
        end_instance(lab, &victim.id)?;
        Ok(vec![Due::once(0.0, move |lab| {
            let world = lab.fetch_world()?;
            let now = lab.group_instances(victim.group)?;
            let new = now.iter().find(|one| one.id != victim.id);
            let new = new.context("there is no replacement yet")?;
            let held = world
                .volumes
                .iter()
                .filter_map(|one| one.attachment.as_ref());
            let held = held.filter(|at| at.instance == new.id && at.state == "attached");
            ensure!(held.count() >= 2, "{} has not both volumes yet", new.id);
            lab.delay_attachments(Duration::ZERO)
        })])
    }))
}

/// EC2 shows the volumes as they were before an instance was terminated.
fn show_old_volumes(lab: &Lab, chance: &mut Chance) -> Result<Fault> {
    let victim = choose_one(lab, chance)?;
    let seconds = chance.between(30.0, 180.0);
    Ok(Box::new(move |lab| {
        lab.hold_volumes(seconds)?;
        end_instance(lab, &victim.id)?;
        Ok(vec![Due::once(seconds, |_| Ok(()))])
    }))
}
