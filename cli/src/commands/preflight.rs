//! `kctl preflight`: what can be known before anything is made, and for a cluster that exists, what keeps its parts from reaching each
//! other. Changes nothing but for a namespace that comes and goes, with `--live`.

mod addresses;
mod delegation;
mod live;
mod permissions;
mod ports;
mod quotas;
mod spec_problems;

use super::document::print_document;
use super::observe::{ObserveOptions, ObservedCluster, observe_cluster};
use super::session::Session;
use super::update::preview_plan;
use crate::args::{Preflight, ReportFormat};
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::preflight::{PreflightRow, RowState, render};
use aws_client::fips;
use cloud::Cloud;
use engine::{Action, Plan, Ref, Snapshot};
use serde::Serialize;

/// The checks, as rows name them.
const QUOTAS: &str = "quotas";
const INSTANCE_TYPES: &str = "instance types";
const IMAGES: &str = "images";
const ADDRESSES: &str = "addresses";
const PERMISSIONS: &str = "permissions";
const DELEGATION: &str = "delegation";
const PORTS: &str = "ports";
/// Those of `--live`.
const CONNECTIONS: &str = "connections";
const PACKETS: &str = "packets";
const CLUSTER_DNS: &str = "cluster DNS";

/// What every check may look at.
struct Inputs<'a> {
    observed: &'a ObservedCluster,
    /// What an update would do now.
    plan: &'a Plan<Cloud>,
    snapshot: &'a Snapshot<Cloud>,
}

impl Inputs<'_> {
    fn full(&self) -> &full::FullSpec {
        &self.observed.expanded.full
    }

    /// AWS' id of an object, if it is there.
    fn physical<'b>(&'b self, of: &'b Ref) -> Option<&'b str> {
        match of {
            Ref::Given(id) => Some(id),
            Ref::Own { .. } => {
                let found = self.snapshot.find(&of.id()?)?;
                Some(&found.physical)
            }
        }
    }

    /// How many objects of a kind an update would create.
    fn created(&self, kind: &str) -> usize {
        let steps = self.plan.steps.values();
        steps
            .filter(|step| step.action == Action::Create && step.id.kind() == kind)
            .count()
    }
}

/// Checks the cluster that the options name.
pub async fn run(args: &Preflight, session: &Session<'_>) -> Result<Outcome, CommandError> {
    check_options(args, fips::is_running())?;
    let name = session.cluster_name(args.target.cluster()).await?;
    let rows = Box::pin(check_cluster(&name, args, session)).await?;
    print_report(&name, args.output, &rows, session)?;
    let problems: Vec<&PreflightRow> = rows
        .iter()
        .filter(|row| row.state == RowState::Problem)
        .collect();
    let Some(first) = problems.first() else {
        session.shell.print_done("no check found a problem");
        return Ok(Outcome::Fine);
    };
    let count = match problems.len() {
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        format!("preflight of {name}: {count}"),
        first.next.clone().unwrap_or_default(),
    ))
}

/// Refuses what cannot be done by this kctl, which has the FIPS module or not.
fn check_options(args: &Preflight, has_fips: bool) -> Result<(), CommandError> {
    if let Some(word) = args.target.unexpected_word() {
        return Err(CommandError::usage_error(
            format!("one word too many: {word:?}"),
            "kctl preflight [cluster] [NAME]",
        ));
    }
    if !args.live && (args.reach.internal || args.reach.api_server.is_some()) {
        return Err(CommandError::usage_error(
            "--internal and --api-server say how the API is reached, which only --live asks",
            "add --live, or leave them out",
        ));
    }
    if args.live && has_fips {
        return Err(CommandError::usage_error(
            "--live is not possible with the FIPS module: nodeup of such a build needs the C library, which the image of its pods does not have",
            "leave --live out; the rows `ports` say what AWS has against connections",
        ));
    }
    Ok(())
}

async fn check_cluster(
    name: &str,
    args: &Preflight,
    session: &Session<'_>,
) -> Result<Vec<PreflightRow>, CommandError> {
    let options = ObserveOptions {
        // Which version workers get decides about nothing here.
        ignore_skew: true,
        offerings: true,
        ..ObserveOptions::default()
    };
    let observed = match observe_cluster(name, options, session).await {
        Ok(observed) => observed,
        Err(error) => return spec_problems::rows_of_error(error, args.live),
    };
    let (plan, snapshot) = Box::pin(preview_plan(&observed, session)).await?;
    let inputs = Inputs {
        observed: &observed,
        plan: &plan,
        snapshot: &snapshot,
    };
    let (quotas, addresses, permissions, delegation, ports) = futures::join!(
        Box::pin(quotas::check(&inputs)),
        Box::pin(addresses::check(&inputs)),
        Box::pin(permissions::check(&inputs)),
        Box::pin(delegation::check(&inputs, args.name_server)),
        Box::pin(ports::check(&inputs)),
    );
    let of_spec = spec_problems::fine_rows(&observed.expanded.full);
    let live = match args.live {
        true => Box::pin(live::check(&inputs, &ports, &args.reach, session)).await?,
        false => Vec::new(),
    };
    let all = [
        of_spec,
        quotas,
        addresses,
        permissions,
        delegation,
        ports,
        live,
    ];
    Ok(all.concat())
}

/// The report for programs. Additions keep `format`; anything else raises it.
#[derive(Serialize)]
struct PreflightDocument<'a> {
    format: u32,
    cluster: &'a str,
    checks: &'a [PreflightRow],
}

fn print_report(
    name: &str,
    output: ReportFormat,
    rows: &[PreflightRow],
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let document = PreflightDocument {
        format: 1,
        cluster: name,
        checks: rows,
    };
    let shell = session.shell;
    if output != ReportFormat::Table {
        return print_document(&document, output, shell);
    }
    shell.print_result(&render(rows, shell.paint()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ApiReach, ClusterWords};

    #[test]
    fn connections_are_not_tried_with_a_nodeup_that_needs_the_c_library() {
        for (live, has_fips) in [(false, false), (false, true), (true, false), (true, true)] {
            let args = Preflight {
                target: ClusterWords::default(),
                name_server: None,
                live,
                reach: ApiReach::default(),
                output: ReportFormat::Table,
            };
            let refused = check_options(&args, has_fips).err();
            let cause = refused.map(|error| error.cause.unwrap().to_string());
            let is_named = cause
                .as_ref()
                .map(|cause| cause.starts_with("--live is not possible with the FIPS module"));
            assert_eq!(is_named, (live && has_fips).then_some(true), "{cause:?}");
        }
    }
}
