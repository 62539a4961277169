//! Kubelets renew both their certificates while their machines run: with certificates of ten minutes, twice.

use super::{PATIENCE, Step, cluster, pods, reports};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use x509_parser::pem::Pem;

/// What the spec says, and how long that is.
const LIFE: (&str, Duration) = (
    "--set=spec.kubeControllerManager.ClusterSigningDuration=10m",
    Duration::from_mins(10),
);

/// kube-proxy's, which nobody renews before the next boot.
const PROXY: &str = "/var/lib/kube-proxy/client.crt";

/// A kubelet's as a client, and as a server.
const KUBELET: [&str; 2] = [
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/var/lib/kubelet/pki/kubelet-server-current.pem",
];

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(5);

pub const STEPS: [Step; 9] = [
    ("kctl makes a cluster", |lab| {
        cluster::make(lab, &["--networking=flannel", "--dns=none", LIFE.0])
    }),
    ("three machines become Ready nodes", cluster::ready),
    ("six pods run, on both workers", pods::run),
    (
        "kubelets' certificates end soon, kube-proxy's do not",
        lives,
    ),
    ("the others are issued anew without a boot", others),
    ("both are renewed on every node", renewed),
    ("both are renewed again", renewed),
    ("kctl says that it is healthy", cluster::healthy),
    ("pods reach each other across nodes", pods::reach),
];

/// What is looked at of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    serial: String,
    /// From now; none once it has ended.
    left: Duration,
}

fn seen(lab: &Lab, host: &str, path: &str) -> Result<Seen> {
    let text = lab.exec(host, &["cat", path])?;
    let mut blocks = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok);
    let pem = blocks.find(|pem| pem.label == "CERTIFICATE");
    let pem = pem.with_context(|| format!("{path} of {host} holds none"))?;
    let certificate = pem.parse_x509()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let ends = u64::try_from(certificate.validity().not_after.timestamp())?;
    Ok(Seen {
        serial: certificate.raw_serial_as_string(),
        left: Duration::from_secs(ends).saturating_sub(now),
    })
}

/// Every machine of the cluster.
fn machines(lab: &Lab) -> Result<Vec<String>> {
    let mut all = cluster::workers(lab)?;
    all.push(cluster::control_plane(lab)?);
    Ok(all.into_iter().map(|machine| machine.id).collect())
}

/// Both certificates of every kubelet, by machine and path.
fn all(lab: &Lab) -> Result<BTreeMap<(String, &'static str), Seen>> {
    let mut found = BTreeMap::new();
    for machine in machines(lab)? {
        for path in KUBELET {
            let seen = seen(lab, &machine, path)?;
            found.insert((machine.clone(), path), seen);
        }
    }
    Ok(found)
}

fn lives(lab: &mut Lab) -> Result<()> {
    lab.until("every kubelet has both", PATIENCE, |lab| all(lab).map(drop))?;
    for (of, seen) in all(lab)? {
        ensure!(seen.left <= LIFE.1, "{of:?}: {seen:?}");
    }
    for machine in machines(lab)? {
        let proxy = seen(lab, &machine, PROXY)?;
        ensure!(
            proxy.left > Duration::from_hours(365 * 24),
            "{machine}: {proxy:?}"
        );
    }
    answer(lab)
}

/// What a timer starts once a week issues a certificate that is due, here since it is gone, and changes nothing else.
fn others(lab: &mut Lab) -> Result<()> {
    for machine in machines(lab)? {
        lab.sh(&machine, "systemctl is-active nodeup-certificates.timer")?;
        let (before, report) = (seen(lab, &machine, PROXY)?, reports::told(lab, &machine)?);
        let renew = format!("rm {PROXY} && systemctl start nodeup-certificates.service");
        lab.sh(&machine, &renew)?;
        let after = seen(lab, &machine, PROXY)?;
        ensure!(after.serial != before.serial, "{machine}: still {before:?}");
        let report = reports::after(lab, &machine, &report.started)?;
        ensure!(report.changes == 1, "{}", reports::figures(&report));
    }
    Ok(())
}

/// Waits for another serial number of each, with nothing ending before; then the kubelets answer.
fn renewed(lab: &mut Lab) -> Result<()> {
    let before = all(lab)?;
    let mut shortest = LIFE.1;
    lab.until("each has another serial number", PATIENCE, |lab| {
        std::thread::sleep(PAUSE);
        let now = all(lab)?;
        shortest = now
            .values()
            .map(|seen| seen.left)
            .fold(shortest, Duration::min);
        let mut old = now
            .iter()
            .filter(|(of, seen)| before.get(of).map(|one| &one.serial) == Some(&seen.serial));
        let old = old.next();
        ensure!(old.is_none(), "{old:?}");
        Ok(())
    })?;
    eprintln!(
        "       the shortest time left that was seen: {} s",
        shortest.as_secs()
    );
    ensure!(!shortest.is_zero(), "one ended before it was renewed");
    answer(lab)
}

/// Logs of a pod on each node go through its kubelet; and each kubelet shows a certificate that the cluster's authority signed,
/// for the address that it is dialed at.
fn answer(lab: &Lab) -> Result<()> {
    let control = cluster::control_plane(lab)?.id;
    for machine in machines(lab)? {
        lab.is_ready(&machine)?;
        let pod = format!("kube-proxy-{machine}");
        let words = ["logs", "--namespace=kube-system", "--tail=1", &pod];
        let said = lab.kubectl(&words)?;
        ensure!(!said.is_empty(), "{pod} has no logs");
        let address = lab.instance(&machine)?.address;
        let pki = "/srv/kubernetes";
        let ask = format!(
            "curl --silent --show-error --fail --max-time 10 --cacert {pki}/ca.crt \
             --cert {pki}/kube-apiserver/kubelet-api.crt --key {pki}/kube-apiserver/kubelet-api.key \
             https://{address}:10250/healthz"
        );
        let said = lab.sh(&control, &ask)?;
        ensure!(said == "ok", "{machine} says {said:?}");
    }
    Ok(())
}
