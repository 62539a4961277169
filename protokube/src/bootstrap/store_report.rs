//! Stores boot reports of workers, which may not write to the state store themselves.

use super::EndpointContext;
use super::caller::KnownInstance;
use super::reject::Rejection;
use anyhow::Context as _;
use aws_client::store::Expect;
use node::bootstrap::check_report;
use node::report::report_key;

/// Stores a report, replacing the instance's previous one.
pub(super) async fn store_report(
    context: &EndpointContext,
    known: &KnownInstance,
    body: &[u8],
) -> Result<(), Rejection> {
    let report = check_report(body, &known.instance, &context.cluster, &known.group);
    let report =
        report.map_err(|refusal| Rejection::from(refusal).with_instance(&known.instance))?;
    let written = async {
        let bytes = serde_json::to_vec_pretty(&report)?;
        let key = report_key(&known.instance);
        let written = context.store.put(&key, bytes, Expect::Any).await;
        written.with_context(|| format!("could not write {key}"))
    };
    let written = written.await.map(drop);
    written.map_err(|error| {
        Rejection::unavailable("the state store", &error).with_instance(&known.instance)
    })
}
