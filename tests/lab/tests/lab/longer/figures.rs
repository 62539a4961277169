//! How long instances take to become nodes, for docs/specification.md. Nothing is asserted.

use super::super::cluster::{self, CLUSTER, Network};
use super::super::{Step, reports};
use anyhow::{Context, Result};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use lab::scenario::Lab;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The stages of nodeup, in order.
const STAGES: [&str; 6] = ["identify", "fetch", "verify", "build", "apply", "report"];

pub const WITH_FLANNEL: [Step; 1] = [("three instances become Ready nodes", |lab| {
    print_figures(lab, Network::Flannel)
})];
pub const WITH_CILIUM: [Step; 1] = [("three instances become Ready nodes", |lab| {
    print_figures(lab, Network::Cilium)
})];

fn print_figures(lab: &mut Lab, network: Network) -> Result<()> {
    cluster::create_spec(lab, &[network.argument(), "--dns=none"])?;
    let calls = count_calls(lab)?;
    let begun = OffsetDateTime::now_utc();
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    let updated = OffsetDateTime::now_utc();
    let of_kctl = self::count_calls(lab)?.since(&calls);
    lab.run_kctl(&["export", "kubeconfig", CLUSTER, "--admin=12h"])?;
    cluster::expect_ready(lab, 1)?;
    let mut instances = vec![cluster::control_plane(lab, 0)?];
    instances.extend(cluster::worker_instances(lab)?);
    let mut table = new_table();
    let mut last: f64 = 0.0;
    for instance in instances {
        let (row, ready) = table_row(lab, &instance.id, updated)?;
        table.add_row(row);
        last = last.max(ready);
    }
    let of_all = self::count_calls(lab)?.since(&calls);
    let update = (updated - begun).as_seconds_f64();
    eprintln!(
        "\nkctl update --yes            {update:6.1} s, {} AWS calls, {} store calls",
        of_kctl.aws, of_kctl.store
    );
    eprintln!("its end to three Ready nodes {last:6.1} s");
    eprintln!(
        "its begin to the same        {:6.1} s, {} AWS calls, {} store calls, of all",
        update + last,
        of_all.aws,
        of_all.store
    );
    eprintln!(
        "\nSeconds after the end of kctl update, but for the stages of nodeup: seconds that they took\n{table}"
    );
    Ok(())
}

/// Number of calls.
#[derive(Debug, Clone, Copy)]
struct Calls {
    /// Every service except S3.
    aws: u64,
    store: u64,
}

impl Calls {
    fn since(self, before: &Self) -> Self {
        Self {
            aws: self.aws - before.aws,
            store: self.store - before.store,
        }
    }
}

/// All calls until now, of every client.
fn count_calls(lab: &Lab) -> Result<Calls> {
    let url = format!("{}/_simulator/calls", lab.addresses().simulator);
    let said = std::process::Command::new("curl")
        .args(["--silent", "--show-error", "--fail", &url])
        .output();
    let said: Value = serde_json::from_slice(&said.context("running curl")?.stdout).context(url)?;
    let of = |key: &str| {
        said[key]
            .as_u64()
            .with_context(|| format!("no {key} in {said}"))
    };
    Ok(Calls {
        aws: of("aws")?,
        store: of("s3")?,
    })
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    let header = ["group", "user data", "nodeup"]
        .into_iter()
        .chain(STAGES)
        .chain(["done", "Ready", "changes"]);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A instance's row, and when its node was Ready, seconds after `updated`.
fn table_row(lab: &Lab, id: &str, updated: OffsetDateTime) -> Result<(Vec<String>, f64)> {
    let report = reports::wait_for_report(lab, id)?;
    let lines = lab.read_stages(id)?;
    let first = |source: &str| {
        let found = lines.iter().find(|line| line.source == source);
        let found = found.with_context(|| format!("{id} said nothing of {source}"))?;
        seconds_since(updated, &found.time)
    };
    let took: Vec<f64> = STAGES
        .iter()
        .map(|name| {
            report
                .stages
                .iter()
                .find(|stage| stage.name == *name)
                .map_or(0.0, |stage| stage.seconds)
        })
        .collect();
    let done = seconds_since(updated, &report.started)? + took.iter().sum::<f64>();
    let node = lab.get_objects(&["node", id])?;
    let conditions = node["status"]["conditions"]
        .as_array()
        .context("conditions")?;
    let ready = conditions
        .iter()
        .find(|one| one["type"] == "Ready")
        .context("Ready")?;
    let ready = seconds_since(
        updated,
        ready["lastTransitionTime"].as_str().context("a time")?,
    )?;
    let mut row = vec![report.group.clone()];
    row.extend(
        [first("user-data")?, first("nodeup")?]
            .iter()
            .chain(&took)
            .chain(&[done, ready])
            .map(|seconds| format!("{seconds:.1}")),
    );
    row.push(report.changes.to_string());
    Ok((row, ready))
}

fn seconds_since(from: OffsetDateTime, time: &str) -> Result<f64> {
    let time = OffsetDateTime::parse(time, &Rfc3339).with_context(|| time.to_owned())?;
    Ok((time - from).as_seconds_f64())
}
