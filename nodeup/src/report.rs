//! Stage report: sends the boot report, for operators who cannot log in to the instance. Control planes write it to the state
//! store; workers send it to protokube.

use crate::bootstrap_client::BootstrapClient;
use crate::retry::{AttemptLog, repeat_until_final, unlimited_backoff};
use crate::run::Run;
use crate::stage::Stages;
use crate::stored;
use anyhow::Error;
use aws_client::fips;
use aws_client::store::Expect;
use node::bootstrap::REPORT_PATH;
use node::report::{BootReport, REPORT_FORMAT, first_changes, report_key};
use std::collections::BTreeSet;

/// Attempts to send the report of a successful run with changes, over some minutes, because no other report follows soon.
const TRIES: usize = 30;

/// Attempts to send other reports: after a failure the next run reports again, a run without changes has no news, and Auto Scaling
/// waits for an instance on its way into a warm pool.
const TRIES_OF_OTHERS: usize = 3;

/// Builds the report of this run from its changes and its error.
pub fn build_report(
    run: &Run,
    stages: &Stages,
    changes: &BTreeSet<String>,
    error: Option<&Error>,
) -> BootReport {
    let boot = &run.boot;
    BootReport {
        format: REPORT_FORMAT,
        instance: run.facts().instance_id.clone(),
        cluster: boot.cluster.clone(),
        group: boot.group.clone(),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        fips: fips::is_running(),
        node_config: boot.node_config.clone(),
        started: stages.started_at_text(),
        stages: stages.all_stages(),
        changes: changes.len(),
        changed: first_changes(changes),
        error: error.map(|error| format!("{error:#}")),
    }
}

/// Sends the report, with retries; `warming`: the instance goes to the warm pool of its group.
pub async fn send_report(
    run: &Run,
    report: &BootReport,
    warming: bool,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<()> {
    let Run {
        boot, identified, ..
    } = run;
    let is_news = report.error.is_none() && report.changes > 0 && !warming;
    let pace = unlimited_backoff().with_max_times(if is_news { TRIES } else { TRIES_OF_OTHERS });
    let body = serde_json::to_vec_pretty(report)?;
    let Some(base) = &boot.config_base else {
        let endpoint = BootstrapClient {
            boot,
            ec2: &identified.ec2,
            clock: run.clock,
        };
        let post = || async { endpoint.post_body(REPORT_PATH, &body).await.map(drop) };
        return repeat_until_final(pace, attempt_log, post).await;
    };
    let store = stored::open_store(base, boot, &identified.clients)?;
    let key = report_key(&report.instance);
    repeat_until_final(pace, attempt_log, || async {
        let put = store.put(&key, body.clone(), Expect::Any).await;
        put.map(drop).map_err(stored::classify_error)
    })
    .await
}
