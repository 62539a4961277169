//! The boot report: how this run went, for operators who cannot reach the machine. Control planes write it to the
//! state store, workers hand it to protokube.

use crate::endpoint::Endpoint;
use crate::retry::{Told, patient, repeat};
use crate::run::Run;
use crate::stage::Stages;
use crate::stored;
use anyhow::Error;
use aws_client::store::Expect;
use node::bootstrap::REPORT_PATH;
use node::report::{BootReport, REPORT_FORMAT, named, report_key};
use std::collections::BTreeSet;

/// How often the report of a run that made a node is tried, over some minutes: there will be no other one soon.
const TRIES: usize = 30;

/// How often that of another is: one that failed is followed by the next run, and one without changes has no news.
const TRIES_OF_OTHERS: usize = 3;

/// What is said of this run: what it changed, and the error it ended with.
pub fn report(
    run: &Run,
    stages: &Stages,
    changes: &BTreeSet<String>,
    error: Option<&Error>,
) -> BootReport {
    let boot = &run.boot;
    BootReport {
        format: REPORT_FORMAT,
        instance: run.host().instance_id.clone(),
        cluster: boot.cluster.clone(),
        group: boot.group.clone(),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        node_config: boot.node_config.clone(),
        started: stages.started(),
        stages: stages.all(),
        changes: changes.len(),
        changed: named(changes),
        error: error.map(|error| format!("{error:#}")),
    }
}

/// Sends it.
pub async fn send(run: &Run, report: &BootReport, told: Told<'_>) -> anyhow::Result<()> {
    let Run {
        boot, identified, ..
    } = run;
    let news = report.error.is_none() && report.changes > 0;
    let pace = patient().with_max_times(if news { TRIES } else { TRIES_OF_OTHERS });
    let body = serde_json::to_vec_pretty(report)?;
    let Some(base) = &boot.config_base else {
        let endpoint = Endpoint {
            boot,
            machine: &identified.machine,
            clock: run.clock,
        };
        let post = || async { endpoint.post(REPORT_PATH, &body).await.map(drop) };
        return repeat(pace, told, post).await;
    };
    let store = stored::open(base, &identified.clients)?;
    let key = report_key(&report.instance);
    repeat(pace, told, || async {
        let put = store.put(&key, body.clone(), Expect::Any).await;
        put.map(drop).map_err(stored::trouble)
    })
    .await
}
