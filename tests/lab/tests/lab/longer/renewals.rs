//! Kubelets renew both their certificates without a reboot: certificates of ten minutes, twice.

use super::super::{PATIENCE, Step, cluster, pods, reports};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use x509_parser::pem::Pem;

/// The lifetime of kubelets' certificates in the spec.
const LIFE: (&str, Duration) = (
    "--set=spec.kubeControllerManager.ClusterSigningDuration=10m",
    Duration::from_mins(10),
);

/// Certificate of kube-proxy, with the usual lifetime.
const PROXY: &str = "/var/lib/kube-proxy/client.crt";

/// Client and serving certificate of kubelet.
const KUBELET: [&str; 2] = [
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/var/lib/kubelet/pki/kubelet-server-current.pem",
];

/// Time between two checks.
const PAUSE: Duration = Duration::from_secs(5);

pub const STEPS: [Step; 9] = [
    ("kctl makes a cluster", |lab| {
        cluster::create_cluster(lab, &["--networking=flannel", "--dns=none", LIFE.0])
    }),
    ("three instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 1)
    }),
    ("six pods run, on both workers", pods::run_pods),
    (
        "kubelets' certificates end soon, kube-proxy's do not",
        expect_short_lives,
    ),
    ("the others are issued anew without a boot", reissue_others),
    ("both are renewed on every node", expect_renewal),
    ("both are renewed again", expect_renewal),
    ("kctl says that it is healthy", cluster::expect_healthy),
    (
        "pods reach each other across nodes",
        pods::expect_connections,
    ),
];

/// What the test reads of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    serial: String,
    /// Remaining lifetime; zero if it has expired.
    left: Duration,
}

fn read_certificate(lab: &Lab, host: &str, path: &str) -> Result<Seen> {
    let text = lab.exec_in_host(host, &["cat", path])?;
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

/// Every instance of the cluster.
fn list_instances(lab: &Lab) -> Result<Vec<String>> {
    let mut all = cluster::worker_instances(lab)?;
    all.push(cluster::control_plane(lab, 0)?);
    Ok(all.into_iter().map(|instance| instance.id).collect())
}

/// Both certificates of every kubelet, by instance id and path.
fn read_certificates(lab: &Lab) -> Result<BTreeMap<(String, &'static str), Seen>> {
    let mut found = BTreeMap::new();
    for instance in list_instances(lab)? {
        for path in KUBELET {
            let seen = read_certificate(lab, &instance, path)?;
            found.insert((instance.clone(), path), seen);
        }
    }
    Ok(found)
}

fn expect_short_lives(lab: &mut Lab) -> Result<()> {
    lab.wait_until("every kubelet has both", PATIENCE, |lab| {
        read_certificates(lab).map(drop)
    })?;
    for (of, seen) in read_certificates(lab)? {
        ensure!(seen.left <= LIFE.1, "{of:?}: {seen:?}");
    }
    for instance in list_instances(lab)? {
        let proxy = read_certificate(lab, &instance, PROXY)?;
        ensure!(
            proxy.left > Duration::from_hours(365 * 24),
            "{instance}: {proxy:?}"
        );
    }
    expect_kubelets_to_answer(lab)
}

/// The service that a timer starts once a week issues a certificate that is missing, and changes nothing else.
fn reissue_others(lab: &mut Lab) -> Result<()> {
    for instance in list_instances(lab)? {
        lab.run_script(&instance, "systemctl is-active nodeup-certificates.timer")?;
        let (before, report) = (
            read_certificate(lab, &instance, PROXY)?,
            reports::wait_for_report(lab, &instance)?,
        );
        let renew = format!("rm {PROXY} && systemctl start nodeup-certificates.service");
        lab.run_script(&instance, &renew)?;
        let after = read_certificate(lab, &instance, PROXY)?;
        ensure!(
            after.serial != before.serial,
            "{instance}: still {before:?}"
        );
        let report = reports::wait_for_later_report(lab, &instance, &report.started)?;
        ensure!(report.changes == 1, "{}", reports::format_figures(&report));
    }
    Ok(())
}

/// Waits until every certificate has another serial number; none may expire before. Then the kubelets must answer.
fn expect_renewal(lab: &mut Lab) -> Result<()> {
    let before = read_certificates(lab)?;
    let mut shortest = LIFE.1;
    lab.wait_until("each has another serial number", PATIENCE, |lab| {
        std::thread::sleep(PAUSE);
        let now = read_certificates(lab)?;
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
    expect_kubelets_to_answer(lab)
}

/// Every kubelet serves logs, and its serving certificate is signed by the cluster's authority and valid for its address.
fn expect_kubelets_to_answer(lab: &Lab) -> Result<()> {
    let control = cluster::control_plane(lab, 0)?.id;
    for instance in list_instances(lab)? {
        lab.is_ready(&instance)?;
        let pod = format!("kube-proxy-{instance}");
        let words = ["logs", "--namespace=kube-system", "--tail=1", &pod];
        let said = lab.run_kubectl(&words)?;
        ensure!(!said.is_empty(), "{pod} has no logs");
        let address = lab.find_instance(&instance)?.address;
        let pki = "/srv/kubernetes";
        let ask = format!(
            "curl --silent --show-error --fail --max-time 10 --cacert {pki}/ca.crt \
             --cert {pki}/kube-apiserver/kubelet-api.crt --key {pki}/kube-apiserver/kubelet-api.key \
             https://{address}:10250/healthz"
        );
        let said = lab.run_script(&control, &ask)?;
        ensure!(said == "ok", "{instance} says {said:?}");
    }
    Ok(())
}
