//! `protokube etcd-backup` on real control planes: a snapshot goes from one to another, and its sealed keys can be opened.

use super::super::cluster;
use anyhow::{Result, bail, ensure};
use lab::scenario::Lab;

const COMMAND: &str = "/opt/kctl/protokube etcd-backup";

/// A pair of keys of age, for tests only.
pub const RECIPIENT: &str = "age188c50u6r4g8e69se632clw2wt9s9hq5faps6w3m45swpfzug7flsyz3ktm";
pub const IDENTITY: &str =
    "AGE-SECRET-KEY-1DQ7DRH0Y43JYAVF73WWUJL9U2LJ33PE7AK43FW6TZJY2JUGD7W3SWARGN3";

/// Takes a snapshot on one control plane, and brings it to another one from it and from S3.
pub fn carry_snapshot(lab: &mut Lab) -> Result<()> {
    let planes = cluster::control_planes(lab, 3)?;
    let (a, b) = (&planes[0].id, &planes[1].id);
    let run = |host: &str, words: &str| {
        let said = lab.run_script(host, &format!("{COMMAND} {words} 2>&1"))?;
        eprintln!("       {said}");
        anyhow::Ok(said)
    };
    let said = run(a, "save --once --name carried --s3-backup")?;
    ensure!(
        said.contains("verified after") && said.contains("copied to"),
        "{said}"
    );
    // It ends by itself, once b has it.
    let serve = format!(
        "nohup {COMMAND} serve --name carried > /run/served 2>&1 & process=$!
        timeout 60 sh -c 'until grep -q serving /run/served; do sleep 0.2; done'
        echo $process"
    );
    let process = lab.run_script(a, &serve)?;
    run(b, "download --name carried --peer a --timeout 1m")?;
    let ended = format!("while kill -0 {process} 2>/dev/null; do sleep 0.2; done; cat /run/served");
    let said = lab.run_script(a, &ended)?;
    ensure!(said.contains("b have received carried"), "{said}");
    let sums = "cd /var/lib/kctl/etcd-snapshots/main/carried && sha256sum *";
    let (here, there) = (lab.run_script(a, sums)?, lab.run_script(b, sums)?);
    ensure!(
        here == there && here.lines().count() == 4,
        "{here}\n{there}"
    );
    // It is the only one there.
    let Err(refused) = run(b, "delete --name carried") else {
        bail!("the newest verified snapshot was deleted");
    };
    let refused = format!("{refused:#}");
    ensure!(refused.contains("newest verified"), "{refused}");
    lab.run_script(b, "rm -r /var/lib/kctl/etcd-snapshots/main")?;
    run(b, "download --name carried --s3-backup")?;
    ensure!(lab.run_script(b, sums)? == here, "from S3");
    lab.run_script(b, &format!("umask 077; echo {IDENTITY} > /run/identity"))?;
    run(
        b,
        "extractstatefile --name carried --identity /run/identity --file /run/state.zip",
    )?;
    let names = "python3 -m zipfile --list /run/state.zip";
    let said = lab.run_script(b, names)?;
    for name in [
        "pki/private/kubernetes-ca/keyset.yaml",
        "config",
        "cluster-completed.spec",
    ] {
        ensure!(said.contains(name), "{name} is not in {said}");
    }
    lab.run_script(b, "rm /run/identity /run/state.zip")
        .map(drop)
}
