//! The AWS simulator as the daemon's child: started, asked for its world, told how machines are.

use super::DaemonOptions;
use crate::aws_state::{AwsState, HostReport};
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use crate::process::Process;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How long it may take to answer for the first time: a cold Python loads every service.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running simulator, asked about one region.
#[derive(Debug)]
pub struct SimulatorClient {
    client: reqwest::Client,
    /// URL of the form `http://ADDRESS:PORT`.
    url: String,
    region: String,
}

/// A simulator and the process that it is; it ends with whoever started it.
#[derive(Debug)]
pub struct StartedSimulator {
    pub simulator: SimulatorClient,
    /// On the machine's own loopback.
    pub address: SocketAddr,
    /// An AWS credentials file of an administrator.
    pub credentials: PathBuf,
    /// Its standard input: closed when the daemon ends, however it ends.
    _child: Child,
}

impl SimulatorClient {
    /// Starts it strict and with machines, and waits until it answers.
    pub async fn start_simulator(
        place: &LabPaths,
        ledger: &Ledger,
        options: &DaemonOptions,
    ) -> Result<StartedSimulator> {
        let (port_file, credentials) = (place.run().join("port"), place.run().join("credentials"));
        let log = place.run().join("simulator.log");
        let output = File::create(&log).with_context(|| format!("writing {}", log.display()))?;
        let mut command = Command::new(&options.python);
        command
            .args([
                "-m",
                "simulator",
                "--machines",
                "--strict",
                "--until-stdin-closes",
            ])
            .args(["--port", "0", "--region", &options.region])
            .arg("--port-file")
            .arg(&port_file)
            .arg("--operator-credentials")
            .arg(&credentials)
            .current_dir(&options.tests)
            .env("PYTHONPATH", &options.tests)
            .stdin(std::process::Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output);
        let mut child = command.spawn().context("starting the AWS simulator")?;
        if let Some(pid) = child.id() {
            ledger.record(&LedgerEntry::Process(Process::from_pid(pid)?))?;
        }
        let end = Instant::now() + PATIENCE;
        let port: u16 = loop {
            if let Some(status) = child.try_wait()? {
                bail!(
                    "the AWS simulator ended ({status}); {} says why",
                    log.display()
                );
            }
            if let Ok(text) = std::fs::read_to_string(&port_file) {
                break text
                    .trim()
                    .parse()
                    .with_context(|| format!("{text:?} is not a port"))?;
            }
            if Instant::now() > end {
                bail!("the AWS simulator does not answer; see {}", log.display());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(StartedSimulator {
            simulator: Self::connect_to(format!("http://{address}"), options.region.clone())?,
            address,
            credentials,
            _child: child,
        })
    }

    /// One that runs already.
    pub fn connect_to(url: String, region: String) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self {
            client,
            url,
            region,
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The world, once its serial differs from `after` or `wait` is over.
    pub async fn fetch_world(&self, after: Option<u64>, wait: Duration) -> Result<AwsState> {
        let mut url = format!("{}/_simulator/world?region={}", self.url, self.region);
        if let Some(serial) = after {
            url = format!("{url}&after={serial}&wait={}", wait.as_secs_f64());
        }
        let response = self
            .client
            .get(url)
            .send()
            .await
            .context("asking the simulator")?;
        let text = response.error_for_status()?.text().await?;
        serde_json::from_str(&text).context("the simulator's world is not of the form of world.rs")
    }

    /// Lets calls fail from now on, as `tests/simulator/README.md` describes it; an empty list ends that.
    pub async fn set_faults(&self, faults: &serde_json::Value) -> Result<()> {
        let url = format!("{}/_simulator/faults", self.url);
        let response = self.client.post(url).json(faults).send().await;
        response
            .context("telling the simulator of faults")?
            .error_for_status()?;
        Ok(())
    }

    /// For so many seconds DescribeVolumes answers as of now; zero ends that.
    pub async fn hold_volumes(&self, seconds: f64) -> Result<()> {
        let url = format!("{}/_simulator/stale", self.url);
        let response = self.client.post(url).json(&seconds).send().await;
        response
            .context("telling the simulator to answer as of now")?
            .error_for_status()?;
        Ok(())
    }

    /// Tells how machines are. What does not fit any more is the simulator's to ignore.
    pub async fn send_report(&self, report: &HostReport) -> Result<()> {
        let url = format!("{}/_simulator/report", self.url);
        let response = self.client.post(url).json(report).send().await;
        response
            .context("reporting to the simulator")?
            .error_for_status()?;
        Ok(())
    }
}
