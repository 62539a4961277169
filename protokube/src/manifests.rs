//! Static pods of the control plane, written in the order in which they can start. Each waits at a gate that is a real health check. A
//! manifest that is there and says what it should is left alone, gates or not: after a reboot kubelet starts what it finds, and a
//! protokube that starts again restarts nothing.

use crate::log::Voice;
use crate::probe::Probe;
use host::Host;
use node::manifests::{ETCD_SERVES, Pod, manifest_path};
use node::ports;
use node::report::Status;
use node::yaml::to_yaml;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;

/// kubelet's health, on the loopback address.
const KUBELET: &str = "http://127.0.0.1:10248/healthz";

/// Manifests hold no secrets, and nobody edits them.
const MODE: u32 = 0o440;

/// What serves the API.
const API_SERVER: &str = "kube-apiserver";

/// What comes right after it; all else comes last.
const CONTROLLERS: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

/// What must be healthy, and where that is asked.
#[derive(Clone, Debug)]
pub struct Gates {
    /// kubelet's health.
    pub kubelet: String,
    /// Health of each etcd cluster that has its member here, by name.
    pub etcd: BTreeMap<String, String>,
    /// Which of them are formed and have been started as members of what exists.
    pub settled: watch::Receiver<BTreeMap<String, bool>>,
    /// Where protokube answers probes for the API server, without path.
    pub health: String,
    /// Time between looks.
    pub pace: Duration,
}

impl Gates {
    /// Those of a machine with these etcd clusters, whose health is on these ports.
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
        }
    }
}

/// Writes the pods' manifests, by name, and then sees to it that they stay.
pub async fn run(
    host: &Host,
    pods: &BTreeMap<String, Pod>,
    gates: &Gates,
    probe: &Probe,
    voice: &Voice,
) -> anyhow::Result<()> {
    let role = Role {
        host,
        gates,
        probe,
        voice,
    };
    loop {
        role.write_all(pods).await?;
        role.voice.say(Status::Finished, "");
        tokio::time::sleep(gates.pace * 60).await;
    }
}

struct Role<'a> {
    host: &'a Host,
    gates: &'a Gates,
    probe: &'a Probe,
    voice: &'a Voice,
}

impl Role<'_> {
    async fn write_all(&self, pods: &BTreeMap<String, Pod>) -> anyhow::Result<()> {
        let missing = self.missing(pods)?;
        if missing.is_empty() {
            return Ok(());
        }
        self.healthy("kubelet", &self.gates.kubelet).await;
        self.etcd().await?;
        if let Some(manifest) = missing.get(API_SERVER) {
            // Its probes point at protokube: nobody there would have kubelet kill it.
            self.answers(&format!("{}/livez", self.gates.health)).await;
            self.write(API_SERVER, manifest)?;
        }
        if missing.keys().all(|name| name == API_SERVER) {
            return Ok(());
        }
        let ready = format!("{}/readyz", self.gates.health);
        self.healthy(API_SERVER, &ready).await;
        let (controllers, rest): (Vec<_>, Vec<_>) = missing
            .iter()
            .filter(|(name, _)| *name != API_SERVER)
            .partition(|(name, _)| CONTROLLERS.contains(&name.as_str()));
        for (name, manifest) in controllers.into_iter().chain(rest) {
            self.write(name, manifest)?;
        }
        Ok(())
    }

    /// The manifests that are not there, or say something else.
    fn missing(&self, pods: &BTreeMap<String, Pod>) -> anyhow::Result<BTreeMap<String, String>> {
        let mut missing = BTreeMap::new();
        for (name, pod) in pods {
            let manifest = to_yaml(pod)?;
            if self.host.read_text(&manifest_path(name))?.as_ref() != Some(&manifest) {
                missing.insert(name.clone(), manifest);
            }
        }
        Ok(missing)
    }

    fn write(&self, name: &str, manifest: &str) -> anyhow::Result<()> {
        self.host
            .write_changed(&manifest_path(name), manifest, MODE)?;
        self.voice
            .say(Status::Started, &format!("{name} may start"));
        Ok(())
    }

    /// Waits for every etcd cluster to be formed, and healthy.
    async fn etcd(&self) -> anyhow::Result<()> {
        let mut settled = self.gates.settled.clone();
        for (name, health) in &self.gates.etcd {
            let is = |all: &BTreeMap<String, bool>| all.get(name) == Some(&true);
            if !is(&settled.borrow_and_update()) {
                let waits = format!("waits for etcd-{name} to be formed");
                self.voice.say(Status::Started, &waits);
            }
            settled.wait_for(is).await?;
            self.healthy(&format!("etcd-{name}"), health).await;
        }
        Ok(())
    }

    /// Waits until it is healthy there.
    async fn healthy(&self, what: &str, url: &str) {
        while let Some(why) = self.probe.unhealthy(url).await {
            self.voice
                .say(Status::Started, &format!("waits for {what}: {why}"));
            tokio::time::sleep(self.gates.pace).await;
        }
    }

    /// Waits until somebody answers there, whatever.
    async fn answers(&self, url: &str) {
        while let Err(error) = self.probe.ask(url).await {
            let waits = format!("waits for protokube's health endpoint: {error:#}");
            self.voice.say(Status::Started, &waits);
            tokio::time::sleep(self.gates.pace).await;
        }
    }
}
