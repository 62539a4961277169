//! Role manifests: writes the static pods of the control plane in the order in which they can start. Each waits for health checks of
//! its dependencies. A manifest that exists with the right content is left alone, so after a reboot kubelet starts what it finds,
//! and a restart of protokube restarts nothing.

use etcd_member::api_manifests::{API_SERVER, CONTROLLERS};
use host::Host;
use node::manifests::{ETCD_SERVES, Pod, manifest_path};
use node::ports;
use node::report::Status;
use node::yaml::to_yaml;
use protokube_role::log::RoleLog;
use protokube_role::probe::Probe;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;

/// URL of kubelet's health check.
const KUBELET: &str = "http://127.0.0.1:10248/healthz";

/// kubelet reads them as root.
const MODE: u32 = 0o400;

/// The etcd cluster without which the API serves everything but Event objects.
const EVENTS: &str = "events";

/// How long the API server waits for a quorum of events.
const EVENTS_PATIENCE: Duration = Duration::from_mins(2);

/// The health checks that pods wait for.
#[derive(Clone, Debug)]
pub struct HealthGates {
    /// URL of kubelet's health check.
    pub kubelet: String,
    /// URLs of the health checks of local etcd members, by etcd cluster.
    pub etcd: BTreeMap<String, String>,
    /// Which etcd clusters are formed and healthy.
    pub settled: watch::Receiver<BTreeMap<String, bool>>,
    /// URL of protokube's health server, without path.
    pub health: String,
    pub pace: Duration,
    /// How long to wait for a quorum of events.
    pub events_patience: Duration,
}

impl HealthGates {
    /// The checks of an instance with these etcd clusters and their health ports.
    pub fn new(
        etcd: impl IntoIterator<Item = (String, u16)>,
        settled: watch::Receiver<BTreeMap<String, bool>>,
    ) -> Self {
        let health = |(name, port)| (name, format!("http://127.0.0.1:{port}{ETCD_SERVES}"));
        Self {
            kubelet: KUBELET.to_owned(),
            etcd: etcd.into_iter().map(health).collect(),
            settled,
            health: format!("http://127.0.0.1:{}", ports::API_HEALTH),
            pace: Duration::from_secs(1),
            events_patience: EVENTS_PATIENCE,
        }
    }
}

/// Writes the manifests of `pods` (by name), and restores them if they change.
pub async fn write_manifests(
    host: &Host,
    pods: &BTreeMap<String, Pod>,
    gates: &HealthGates,
    probe: &Probe,
    role_log: &RoleLog,
) -> anyhow::Result<()> {
    let role = ManifestWriter {
        host,
        gates,
        probe,
        role_log,
    };
    let mut settled = gates.settled.clone();
    loop {
        settled.mark_unchanged();
        let rounds = async {
            loop {
                role.write_all(pods).await?;
                role.role_log.report_status(Status::Finished, "");
                tokio::time::sleep(gates.pace * 60).await;
            }
        };
        // A recovery of etcd takes manifests away, perhaps while others are waited for: everything is looked at again.
        let changed = async {
            if settled.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            ended = rounds => return ended,
            () = changed => {}
        }
    }
}

struct ManifestWriter<'a> {
    host: &'a Host,
    gates: &'a HealthGates,
    probe: &'a Probe,
    role_log: &'a RoleLog,
}

impl ManifestWriter<'_> {
    async fn write_all(&self, pods: &BTreeMap<String, Pod>) -> anyhow::Result<()> {
        let missing = self.missing_manifests(pods)?;
        if missing.is_empty() {
            return Ok(());
        }
        self.wait_until_healthy("kubelet", &self.gates.kubelet)
            .await;
        self.wait_for_etcd().await?;
        // More may have been taken away meanwhile.
        let missing = self.missing_manifests(pods)?;
        if let Some(manifest) = missing.get(API_SERVER) {
            // The API server's probes go to protokube; without an answer kubelet would kill it.
            let livez = format!("{}/livez", self.gates.health);
            self.wait_for_answer("protokube's health server", &livez)
                .await;
            self.write_manifest(API_SERVER, manifest)?;
        }
        if missing.keys().all(|name| name == API_SERVER) {
            return Ok(());
        }
        let ready = format!("{}/readyz", self.gates.health);
        self.wait_until_healthy(API_SERVER, &ready).await;
        let (controllers, rest): (Vec<_>, Vec<_>) = missing
            .iter()
            .filter(|(name, _)| *name != API_SERVER)
            .partition(|(name, _)| CONTROLLERS.contains(&name.as_str()));
        for (name, manifest) in controllers.into_iter().chain(rest) {
            self.write_manifest(name, manifest)?;
        }
        Ok(())
    }

    /// The manifests that do not exist or have other content.
    fn missing_manifests(
        &self,
        pods: &BTreeMap<String, Pod>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut missing = BTreeMap::new();
        for (name, pod) in pods {
            let manifest = to_yaml(pod)?;
            if self.host.read_text(&manifest_path(name))?.as_ref() != Some(&manifest) {
                missing.insert(name.clone(), manifest);
            }
        }
        Ok(missing)
    }

    fn write_manifest(&self, name: &str, manifest: &str) -> anyhow::Result<()> {
        self.host
            .write_changed(&manifest_path(name), manifest, MODE)?;
        self.role_log
            .report_status(Status::Started, &format!("wrote the manifest of {name}"));
        Ok(())
    }

    /// Waits until every etcd cluster is formed and healthy, but not for ever for a quorum of events: its loss must not hold up the
    /// API on an instance that was replaced. It has to run, because the API server does not start before it has a connection to
    /// each etcd (`apiserver/pkg/storage/storagebackend/factory/etcd3.go`: `grpc.WithBlock`).
    async fn wait_for_etcd(&self) -> anyhow::Result<()> {
        for (name, health) in self.gates.etcd.iter().filter(|(name, _)| *name != EVENTS) {
            self.wait_until_settled(name, health).await?;
        }
        let Some(health) = self.gates.etcd.get(EVENTS) else {
            return Ok(());
        };
        let waited = self.wait_until_settled(EVENTS, health);
        match tokio::time::timeout(self.gates.events_patience, waited).await {
            Ok(waited) => waited,
            Err(_) => {
                self.wait_for_answer("etcd-events, which has no quorum either", health)
                    .await;
                Ok(())
            }
        }
    }

    async fn wait_until_settled(&self, name: &str, health: &str) -> anyhow::Result<()> {
        let mut settled = self.gates.settled.clone();
        let is = |all: &BTreeMap<String, bool>| all.get(name) == Some(&true);
        if !is(&settled.borrow_and_update()) {
            let waits = format!("waiting until etcd-{name} is formed");
            self.role_log.report_status(Status::Started, &waits);
        }
        settled.wait_for(is).await?;
        self.wait_until_healthy(&format!("etcd-{name}"), health)
            .await;
        Ok(())
    }

    /// Waits until a health check succeeds.
    async fn wait_until_healthy(&self, what: &str, url: &str) {
        while let Some(why) = self.probe.find_problem(url).await {
            self.role_log
                .report_status(Status::Started, &format!("waiting for {what}: {why}"));
            tokio::time::sleep(self.gates.pace).await;
        }
    }

    /// Waits until a server answers at the URL, with whatever status.
    async fn wait_for_answer(&self, what: &str, url: &str) {
        while let Err(error) = self.probe.fetch_url(url).await {
            let waits = format!("waiting for {what}: {error:#}");
            self.role_log.report_status(Status::Started, &waits);
            tokio::time::sleep(self.gates.pace).await;
        }
    }
}
