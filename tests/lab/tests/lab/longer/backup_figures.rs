//! What backups cost: seconds, memory, and how long the API takes meanwhile, for docs/specification.md. Nothing is asserted.

use super::super::PATIENCE;
use super::super::cluster::{self, CLUSTER};
use anyhow::{Context, Result};
use lab::scenario::{Lab, Writers, unix_time};
use std::thread::sleep;
use std::time::Duration;

/// Sizes of the database, in MB.
const SIZES: [u32; 3] = [10, 500, 2000];

/// How long the API is looked at before.
const QUIET: Duration = Duration::from_secs(20);

/// Puts values of 1 MB that cannot be compressed beside the API's objects, so that the API server holds none of them.
const FILL: &str = "import base64, http.client, json, os, ssl, sys
folder = '/srv/kubernetes/etcd/'
context = ssl.create_default_context(cafile=folder + 'clients-ca.crt')
context.load_cert_chain(folder + 'server.crt', folder + 'server.key')
etcd = http.client.HTTPSConnection('localhost', 4001, context=context)
encode = lambda data: base64.b64encode(data).decode()
for number in range(int(sys.argv[1]), int(sys.argv[2])):
    pair = {'key': encode(b'/figures/%d' % number), 'value': encode(os.urandom(1000000))}
    etcd.request('POST', '/v3/kv/put', json.dumps(pair))
    answer = etcd.getresponse()
    assert answer.status == 200, answer.read()
    answer.read()
";

pub fn run(lab: &mut Lab) -> Result<()> {
    let words = [
        "--networking=flannel",
        "--dns=none",
        "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=16",
        "--set=spec.etcdClusters[0].manager.env=[{name: ETCD_QUOTA_BACKEND_BYTES, value: \"8589934592\"}]",
    ];
    lab.run_step("kctl makes a cluster", |lab| {
        cluster::create_cluster_of(lab, "2", &words)?;
        cluster::expect_healthy(lab)
    })?;
    let host = cluster::control_plane(lab, 0)?.id;
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("figures"))?;
    let mut filled = 0;
    for size in SIZES {
        let title = format!("etcd with {size} MB");
        lab.run_step(&title, |lab| {
            let range = [filled.to_string(), size.to_string()];
            lab.exec_in_host(&host, &["python3", "-c", FILL, &range[0], &range[1]])?;
            measure(lab, &host, &writers, size)
        })?;
        filled = size;
    }
    drop(writers);
    lab.run_step("a restore", restore)
}

fn measure(lab: &Lab, host: &str, writers: &Writers, size: u32) -> Result<()> {
    let quiet = unix_time()?;
    sleep(QUIET);
    eprintln!("       API before: {}", describe(writers, quiet)?);
    let name = format!("size-{size}");
    let snapshot = ["etcd", "snapshot", "save", &name, "--name", CLUSTER];
    for (what, words) in [
        ("save", &snapshot[..]),
        ("drill", &["etcd", "drill", CLUSTER]),
    ] {
        let begun = unix_time()?;
        let said = lab.run_kctl(words)?;
        eprintln!(
            "       {what}: {:.1} s; API meanwhile: {}\n       {}",
            unix_time()? - begun,
            describe(writers, begun)?,
            said.trim()
        );
    }
    let memory =
        "grep -h VmHWM /proc/$(systemctl show --property=MainPID --value protokube)/status";
    eprintln!("       protokube: {}", lab.run_script(host, memory)?);
    Ok(())
}

/// How long requests to the API took that began after a time.
fn describe(writers: &Writers, from: f64) -> Result<String> {
    let attempts = writers.read_attempts()?;
    let since = attempts.iter().filter(|one| one.begun >= from);
    let mut took: Vec<f64> = since.map(|one| (one.ended - one.begun) * 1000.0).collect();
    took.sort_by(f64::total_cmp);
    let at = |part: usize| took.get(took.len() * part / 100).copied();
    let (middle, high) = at(50).zip(at(99)).context("no request was made")?;
    Ok(format!(
        "median {middle:.0} ms, p99 {high:.0} ms of {} requests",
        took.len()
    ))
}

fn restore(lab: &mut Lab) -> Result<()> {
    let begun = unix_time()?;
    let words = [
        "etcd",
        "restore",
        CLUSTER,
        "--snapshot",
        "size-2000",
        "--yes",
        "--timeout=30m",
    ];
    lab.run_kctl(&words)?;
    eprintln!("       etcd serves it after {:.1} s", unix_time()? - begun);
    lab.wait_until("the API is back", PATIENCE, |lab| {
        lab.run_kubectl(&["get", "--raw", "/readyz"]).map(drop)
    })?;
    eprintln!("       the API is back after {:.1} s", unix_time()? - begun);
    Ok(())
}
