//! What a user's spec puts on hosts runs there: a file that a flag of the API server names, a hook, and the tools in static pods.

use super::{PATIENCE, cluster};
use anyhow::{Result, ensure};
use lab::scenario::Lab;
use node::components::TOOLS;
use serde_json::Value;

/// What the hook of the cluster makes before kubelet starts.
const PREPARED: &str = "/var/lib/prepared";

/// What nodeup changes in every boot: a hook that ended is due once more.
pub const DUE_IN_EVERY_BOOT: &str = "unit/prepare.service";

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

pub fn expect_hook(lab: &mut Lab) -> Result<()> {
    let hosts = [
        cluster::control_planes(lab, 3)?,
        cluster::worker_instances(lab)?,
    ]
    .concat();
    for host in hosts {
        lab.run_script(&host.id, &format!("test -e {PREPARED}"))?;
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
    for component in [
        "kube-apiserver",
        "kube-scheduler",
        "etcd-main",
        "kube-proxy",
    ] {
        let pod = format!("{component}-{host}");
        let kubectl = format!("{TOOLS}/bin/kubectl");
        let exec = ["exec", "--namespace=kube-system", &pod, "--"];
        let said = lab.run_kubectl(&[&exec[..], &[&kubectl, "version", "--client"]].concat())?;
        ensure!(said.contains("Client Version"), "{pod}: {said}");
    }
    Ok(())
}
