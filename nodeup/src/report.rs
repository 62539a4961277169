//! The boot report: how this run went, for operators who cannot reach the machine. Control planes write it to the
//! state store, workers hand it to protokube.

use crate::endpoint::Endpoint;
use crate::fetch;
use crate::identify::Identified;
use crate::retry::{Told, Trouble, patient, repeat};
use crate::stage::Stages;
use anyhow::Error;
use aws::store::Expect;
use model::bootstrap::REPORT_PATH;
use model::node::BootConfig;
use model::report::{BootReport, REPORT_FORMAT, report_key};
use std::time::SystemTime;

/// How often a run's report is tried, by whether the run went well: after one that failed there is another soon.
const TRIES: [usize; 2] = [3, 30];

/// What is said of this run.
pub fn report(
    boot: &BootConfig,
    instance: &str,
    stages: &Stages,
    outcome: Result<usize, &Error>,
) -> BootReport {
    BootReport {
        format: REPORT_FORMAT,
        instance: instance.to_owned(),
        cluster: boot.cluster.clone(),
        group: boot.group.clone(),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        node_config: boot.node_config.clone(),
        started: stages.started(),
        stages: stages.all(),
        changes: outcome.unwrap_or_default(),
        error: outcome.err().map(|error| format!("{error:#}")),
    }
}

/// Sends it.
pub async fn send(
    report: &BootReport,
    boot: &BootConfig,
    identified: &Identified,
    told: Told<'_>,
) -> anyhow::Result<()> {
    let well = report.error.is_none();
    let pace = patient().with_max_times(TRIES[usize::from(well)]);
    let body = serde_json::to_vec_pretty(report)?;
    let Some(base) = &boot.config_base else {
        let endpoint = Endpoint {
            boot,
            machine: &identified.machine,
            clock: SystemTime::now,
        };
        let post = || async { endpoint.post(REPORT_PATH, &body).await.map(drop) };
        return repeat(pace, told, post).await;
    };
    let store = fetch::open(base, &identified.clients)?;
    let key = report_key(&report.instance);
    repeat(pace, told, || async {
        let put = store.put(&key, body.clone(), Expect::Any).await;
        put.map(drop).map_err(fetch::trouble)
    })
    .await
}
