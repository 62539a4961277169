//! `kctl get instances`: the machines of a cluster, from whoever knows something of them.

use crate::api::Question;
use crate::args::{GetInstances, ListFormat};
use crate::commands::inspect::Inspector;
use crate::commands::session::Session;
use crate::error::{CommandError, Context};
use crate::machines::{Gathered, Machine, faults};
use crate::ui::instances as shown;
use node::yaml;
use time::OffsetDateTime;

/// Shows the machines of a cluster.
pub async fn run(what: &GetInstances, session: &Session<'_>) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let name = session.cluster(what.cluster.as_deref()).await?;
    let mut inspector = Inspector::of(&name, Question::Nodes, &what.reach, session).await?;
    let seen = inspector.look().await?;
    tracing::debug!(reads = session.store.reads(), calls = ?session.clients.calls(), "asked");
    let machines = &seen.machines;
    match what.output {
        ListFormat::Name => {
            let names = machines
                .iter()
                .map(|machine| format!("instance/{}\n", machine.id));
            session.shell.result(&names.collect::<String>())?;
        }
        ListFormat::Json => {
            let text = serde_json::to_string_pretty(machines);
            session
                .shell
                .document(&text.failed("the machines have no JSON form", DEFECT)?)?;
        }
        ListFormat::Yaml => {
            let text = yaml::to_yaml(machines);
            session
                .shell
                .document(&text.failed("the machines have no YAML form", DEFECT)?)?;
        }
        ListFormat::Table | ListFormat::Wide if machines.is_empty() => {
            session.shell.note(&format!("{name} has no machines"));
        }
        form => {
            let wide = form == ListFormat::Wide;
            let now = OffsetDateTime::now_utc();
            session.shell.result(&shown::render(machines, wide, now))?;
        }
    }
    tell(&seen, &name, session);
    Ok(())
}

/// What could not be looked at, and what to do about machines that are in trouble.
fn tell(seen: &Gathered, name: &str, session: &Session<'_>) {
    if let Err(trouble) = &seen.nodes {
        session
            .shell
            .warning(&format!("which machines are nodes is not known: {trouble}"));
        session.shell.hint(&trouble.next);
    }
    seen.gaps.iter().for_each(|gap| session.shell.warning(gap));
    let next = |machine: &Machine| match &machine.start {
        Some(start) => start.error.as_ref().and(start.next.clone()),
        None => faults(&machine.waits).find_map(|one| one.next.clone()),
    };
    let mut steps: Vec<String> = seen.machines.iter().filter_map(next).collect();
    steps.dedup();
    steps.iter().for_each(|step| session.shell.hint(step));
    let lacking = seen.launch_failures.iter();
    lacking.for_each(|(group, failure)| {
        session.shell.warning(&format!(
            "{group} of {name} could not launch a machine: {}",
            failure.message
        ));
    });
}
