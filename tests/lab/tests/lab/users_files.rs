//! What a user's spec puts on hosts runs there: a file that a flag of the API server names, a hook, and the tools in static pods.

use super::{PATIENCE, cluster};
use anyhow::{Result, ensure};
use lab::scenario::Lab;
use node::components::TOOLS;
use serde_json::Value;

/// What the hook of the cluster makes before kubelet starts.
const PREPARED: &str = "/var/lib/prepared";

/// What nodeup changes in every boot: a hook that ended is due once more.
pub const DUE_IN_EVERY_BOOT: [&str; 2] = ["unit/prepare.service", "unit/contained.service"];

/// What the part of user data writes, and where.
const TEXT: &str = "ä — ü";
const WRITTEN: &str = "/var/lib/written-by-part";

/// Where the volume of workers is.
const MOUNTED: &str = "/data";

/// What the container of the workers' hook makes.
const CONTAINED: &str = "/var/lib/contained";

const AUDIT_LOG: &str = "/var/log/kube-audit/audit.log";

/// Arguments of `kctl create cluster`: an audit policy as a file asset, and a hook.
pub fn spec_words() -> [String; 4] {
    let hook = "spec.hooks[0]";
    [
        "--audit-log".to_owned(),
        format!("--set={hook}.name=prepare"),
        format!("--set={hook}.before[0]=kubelet.service"),
        format!("--set={hook}.manifest=Type=oneshot\nExecStart=/bin/touch {PREPARED}"),
    ]
}

/// Gives the group of the workers a part of user data, a volume of its own, and a hook that runs a container.
pub fn edit_workers(lab: &Lab) -> Result<()> {
    let (part, hook) = ("spec.additionalUserData[0]", "spec.hooks[0]");
    let mount = "spec.volumeMounts[0]";
    let fields = [
        format!("{part}.name=part.sh"),
        format!("{part}.type=text/x-shellscript"),
        format!("{part}.content=#!/bin/sh\nprintf '{TEXT}' >{WRITTEN}\n"),
        "spec.volumes[0].device=/dev/xvdd".to_owned(),
        "spec.volumes[0].size=1".to_owned(),
        format!("{mount}.device=/dev/xvdd"),
        format!("{mount}.filesystem=ext4"),
        format!("{mount}.path={MOUNTED}"),
        format!("{hook}.name=contained"),
        format!("{hook}.execContainer.image=busybox:1.35.0"),
        format!("{hook}.execContainer.command[0]=touch"),
        format!("{hook}.execContainer.command[1]=/rootfs{CONTAINED}"),
    ];
    let edit = ["edit", "ig", "nodes-us-east-1a", "--name", cluster::CLUSTER];
    let set = fields.iter().flat_map(|field| ["--set", field.as_str()]);
    lab.run_kctl(&edit.into_iter().chain(set).collect::<Vec<_>>())
        .map(drop)
}

pub fn expect_hook(lab: &mut Lab) -> Result<()> {
    let workers = cluster::worker_instances(lab)?;
    for host in [&cluster::control_planes(lab, 3)?[..], &workers].concat() {
        lab.run_script(&host.id, &format!("test -e {PREPARED}"))?;
    }
    for worker in workers {
        let written = lab.run_script(&worker.id, &format!("cat {WRITTEN}"))?;
        ensure!(written == TEXT, "{written:?}");
        let mounted = lab.run_script(
            &worker.id,
            &format!("findmnt --noheadings --output FSTYPE {MOUNTED}"),
        )?;
        ensure!(mounted.trim() == "ext4", "{mounted:?}");
        lab.wait_until("its container ran", PATIENCE, |lab| {
            lab.run_script(&worker.id, &format!("test -e {CONTAINED}"))
                .map(drop)
        })?;
    }
    Ok(())
}

/// An API server has logged the creation of a ConfigMap, without its content.
pub fn expect_audit(lab: &mut Lab) -> Result<()> {
    let name = ["configmap", "audited"];
    lab.run_kubectl(&[&["create"], &name[..], &["--from-literal=key=unlogged"]].concat())?;
    let hosts = cluster::control_planes(lab, 3)?;
    lab.wait_until("its creation is in a log", PATIENCE, |lab| {
        let mut lines = Vec::new();
        for host in &hosts {
            let script =
                format!("! test -e {AUDIT_LOG} || grep '\"name\":\"audited\"' {AUDIT_LOG} || :");
            lines.extend(
                lab.run_script(&host.id, &script)?
                    .lines()
                    .map(str::to_owned),
            );
        }
        let created = lines.iter().find_map(|line| {
            let event: Value = serde_json::from_str(line).ok()?;
            (event["verb"] == "create" && event["objectRef"]["resource"] == "configmaps")
                .then_some(event)
        });
        ensure!(
            created.is_some_and(|event| event["level"] == "Metadata"),
            "{lines:?}"
        );
        ensure!(
            lines.iter().all(|line| !line.contains("unlogged")),
            "{lines:?}"
        );
        Ok(())
    })?;
    lab.run_kubectl(&[&["delete"], &name[..]].concat())
        .map(drop)
}

/// Images of components have no tools; the release's are mounted into static pods.
pub fn expect_tools(lab: &mut Lab) -> Result<()> {
    let host = cluster::control_plane(lab, 0)?.id;
    let here = [
        "pods",
        "--namespace=kube-system",
        &format!("--field-selector=spec.nodeName={host}"),
    ];
    let here = lab.get_objects(&here)?["items"].to_string();
    let mut components = vec!["kube-apiserver", "kube-scheduler", "etcd-main"];
    // cilium may have taken its place.
    let proxy = format!("kube-proxy-{host}");
    components.extend(here.contains(&proxy).then_some("kube-proxy"));
    for component in components {
        let pod = format!("{component}-{host}");
        let kubectl = format!("{TOOLS}/bin/kubectl");
        let exec = ["exec", "--namespace=kube-system", &pod, "--"];
        let said = lab.run_kubectl(&[&exec[..], &[&kubectl, "version", "--client"]].concat())?;
        ensure!(said.contains("Client Version"), "{pod}: {said}");
    }
    Ok(())
}
