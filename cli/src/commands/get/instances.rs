//! `kctl get instances`: lists the instances of a cluster with their state.

use crate::api::ApiQuery;
use crate::args::{GetInstances, ListFormat};
use crate::commands::inspect::Inspector;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext};
use crate::ui::instances as shown;
use fleet::{Fleet, InstanceStatus};
use node::yaml;
use time::OffsetDateTime;

/// Shows the instances of a cluster.
pub async fn run(args: &GetInstances, session: &Session<'_>) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let mut inspector = Inspector::open(&name, ApiQuery::Nodes, &args.reach, session).await?;
    let fleet = inspector.observe().await?;
    tracing::debug!(reads = session.store.reads(), calls = ?session.clients.calls(), "asked");
    let instances = &fleet.instances;
    match args.output {
        ListFormat::Name => {
            let names = instances
                .iter()
                .map(|one| format!("instance/{}\n", one.instance.id));
            session.shell.print_result(&names.collect::<String>())?;
        }
        ListFormat::Json => {
            let text = serde_json::to_string_pretty(instances);
            session
                .shell
                .print_document(&text.or_failed("the instances have no JSON form", DEFECT)?)?;
        }
        ListFormat::Yaml => {
            let text = yaml::to_yaml(instances);
            session
                .shell
                .print_document(&text.or_failed("the instances have no YAML form", DEFECT)?)?;
        }
        ListFormat::Table | ListFormat::Wide if instances.is_empty() => {
            session.shell.note(&format!("{name} has no instances"));
        }
        form => {
            let wide = form == ListFormat::Wide;
            let now = OffsetDateTime::now_utc();
            session
                .shell
                .print_result(&shown::render(instances, wide, now))?;
        }
    }
    print_warnings(&fleet, &name, session);
    Ok(())
}

/// Reports what could not be read, the next steps of instances with an error, and failed launches.
fn print_warnings(fleet: &Fleet, name: &str, session: &Session<'_>) {
    if let Err(error) = &fleet.nodes {
        session
            .shell
            .warning(&format!("which instances are nodes is not known: {error}"));
        session.shell.hint(&error.next);
    }
    fleet.gaps.iter().for_each(|gap| session.shell.warning(gap));
    let next_steps = fleet.instances.iter().filter_map(InstanceStatus::next_step);
    let mut steps: Vec<String> = next_steps.collect();
    steps.dedup();
    steps.iter().for_each(|step| session.shell.hint(step));
    let failures = fleet.launch_failures.iter();
    failures.for_each(|(group, failure)| {
        session.shell.warning(&format!(
            "{group} of {name} could not launch an instance: {}",
            failure.message
        ));
    });
}
