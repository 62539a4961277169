//! `kctl toolbox dump`: collects what a person needs to find a fault, in an archive without secrets. Changes nothing, and reads what
//! it can: what fails is listed in the archive.

mod archive;
mod kubernetes;
mod redact;

pub use kubernetes::read_bytes;

use super::delete_cluster;
use super::inspect::Inspector;
use super::session::Session;
use crate::api::ApiQuery;
use crate::args::ToolboxDump;
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::StoreKeys;
use anyhow::Context;
use archive::Archive;
use aws_client::store::Entry;
use aws_cloud::console_output;
use fleet::{Fleet, check_health};
use futures::{StreamExt, stream};
use redact::{redact_resources, redact_spec};
use serde::Serialize;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// The archive explains itself.
const README: &str = include_str!("../../../docs/operations/dump.md");

/// Folders of the state store whose JSON objects hold no secrets.
const FOLDERS: [&str; 4] = ["etcd/", "journal/", "nodes/", "operations/"];

/// How many objects of one folder are read: the newest, whose names sort last.
const OBJECTS: usize = 200;

/// Most bytes that are read of an object.
const OBJECT_BYTES: usize = 4 << 20;

/// Calls at the same time.
const PARALLEL: usize = 8;

/// Runs the command.
pub async fn run(args: &ToolboxDump, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let mut inspector =
        Inspector::open(&name, ApiQuery::NodesAndPods, &args.reach, session).await?;
    let now = OffsetDateTime::now_utc();
    let stem = archive_stem(&name, now)?;
    let path = args.out.clone();
    let path = path.unwrap_or_else(|| PathBuf::from(format!("{stem}.tar.gz")));
    let time = u64::try_from(now.unix_timestamp()).unwrap_or_default();
    let mut archive =
        Archive::create(&path, &stem, time).map_err(|error| archive_error(&path, error))?;
    let written = add_all(&name, args, &mut inspector, &mut archive, session).await;
    let problems = written.and_then(|()| archive.finish());
    let problems = problems.map_err(|error| archive_error(&path, error))?;
    if problems > 0 {
        session.shell.warning(&format!(
            "{problems} of its parts could not be read: problems.txt in the archive says why"
        ));
    }
    session
        .shell
        .print_result(&format!("{}\n", path.display()))?;
    Ok(Outcome::Fine)
}

/// `NAME-20261124T021500Z`.
fn archive_stem(name: &str, now: OffsetDateTime) -> Result<String, CommandError> {
    let form = format_description!("[year][month][day]T[hour][minute][second]Z");
    let time = now.format(form);
    let time = time.or_failed(
        "the time has no text",
        "report this: it is a defect of kctl",
    )?;
    Ok(format!("{name}-{time}"))
}

fn archive_error(path: &Path, error: io::Error) -> CommandError {
    let exists = error.kind() == io::ErrorKind::AlreadyExists;
    let error = anyhow::Error::new(error).context(format!("{} was not written", path.display()));
    let hint = match exists {
        true => "remove it, or name another file with --out",
        false => "name a file in a folder with enough room with --out",
    };
    CommandError::new(ErrorKind::Failed, error, hint)
}

async fn add_all(
    name: &str,
    args: &ToolboxDump,
    inspector: &mut Inspector<'_>,
    archive: &mut Archive,
    session: &Session<'_>,
) -> io::Result<()> {
    let say = |what: &str| session.shell.note(&format!("reading {what}"));
    archive.add_file("README.md", README.as_bytes())?;
    add_about(name, archive)?;
    say("the spec and the state store");
    add_specs(inspector, archive)?;
    add_store(name, archive, session).await?;
    say("AWS resources");
    let resources = delete_cluster::observe_resources(name, session).await;
    let resources = resources.and_then(|resources| {
        let mut resources = serde_json::to_value(resources).or_failed(
            "the resources have no JSON form",
            "report this: it is a defect of kctl",
        )?;
        redact_resources(&mut resources);
        Ok(resources)
    });
    add_json(archive, "cloud/resources.json", resources)?;
    say("instances and health");
    let fleet = match inspector.observe().await {
        Ok(fleet) => fleet,
        Err(error) => {
            archive.note_problem(&format!("instances.json: {}", error.cause_text()));
            return Ok(());
        }
    };
    let health = check_health(inspector.groups(), &fleet);
    add_json(archive, "health.json", Ok(health))?;
    add_json(archive, "instances.json", Ok(&fleet.instances))?;
    for gap in &fleet.gaps {
        archive.note_problem(gap);
    }
    say("consoles of instances");
    add_consoles(&fleet, inspector, archive).await?;
    let client = match (&fleet.nodes, inspector.api_client()) {
        (Ok(_), Some(client)) => client,
        (Err(error), _) => {
            archive.note_problem(&format!("kubernetes: {error}"));
            return Ok(());
        }
        (Ok(_), None) => return Ok(()),
    };
    say("objects and logs of Kubernetes");
    kubernetes::add_objects(client, archive).await?;
    for node in choose_nodes(&fleet, args.max_nodes) {
        say(&format!("the journal of {node}"));
        kubernetes::add_journal(client, &node, archive).await?;
    }
    Ok(())
}

fn add_about(name: &str, archive: &mut Archive) -> io::Result<()> {
    let about = json!({
        "format": 1,
        "cluster": name,
        "kctl": env!("CARGO_PKG_VERSION"),
        "time": OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default(),
    });
    add_json(archive, "about.json", Ok(about))
}

fn add_json<T: Serialize>(
    archive: &mut Archive,
    name: &str,
    value: Result<T, CommandError>,
) -> io::Result<()> {
    let text = value.map_err(|error| anyhow::anyhow!(error.cause_text()));
    let text = text.and_then(|value| serde_json::to_vec_pretty(&value).context("writing JSON"));
    archive.add_result(name, text)
}

/// The objects of the spec, without contents of files.
fn add_specs(inspector: &Inspector<'_>, archive: &mut Archive) -> io::Result<()> {
    let documents = &inspector.cluster().state.documents;
    let objects: Result<Vec<Value>, _> = documents
        .iter()
        .map(|document| serde_json::to_value(&document.object))
        .collect();
    let text = objects.and_then(|mut objects| {
        objects.iter_mut().for_each(redact_spec);
        serde_json::to_vec_pretty(&objects)
    });
    archive.add_result("spec.json", text)
}

/// The names of all objects in the store, and those that say what kctl and instances did.
async fn add_store(name: &str, archive: &mut Archive, session: &Session<'_>) -> io::Result<()> {
    let keys = StoreKeys::new(name);
    let entries = match session.store.list(&keys.prefix(), None).await {
        Ok(entries) => entries,
        Err(error) => {
            archive.note_problem(&format!("store: {error:#}"));
            return Ok(());
        }
    };
    let mut listing = String::new();
    for entry in &entries {
        listing.push_str(&format!("{:>10}  {}\n", entry.size, entry.key));
    }
    archive.add_file("store/objects.txt", listing.as_bytes())?;
    let wanted = stream::iter(choose_objects(&keys, &entries))
        .map(async |key| (key, session.store.get_first(key, OBJECT_BYTES).await))
        .buffered(PARALLEL);
    let mut wanted = std::pin::pin!(wanted);
    while let Some((key, object)) = wanted.next().await {
        let below = key.strip_prefix(&keys.prefix()).unwrap_or(key);
        match object {
            Ok(Some(bytes)) => archive.add_file(&format!("store/{below}"), &bytes)?,
            // Deleted meanwhile.
            Ok(None) => {}
            Err(error) => archive.note_problem(&format!("store/{below}: {error:#}")),
        }
    }
    Ok(())
}

/// The keys of the objects to read.
fn choose_objects<'e>(keys: &StoreKeys, entries: &'e [Entry]) -> Vec<&'e str> {
    let all = || entries.iter().map(|entry| entry.key.as_str());
    let mut wanted: Vec<&str> = all()
        .filter(|key| keys.is_process_state(key) && !key.starts_with(&keys.operation_prefix()))
        .collect();
    for folder in FOLDERS.map(|folder| keys.key_below(folder)) {
        let is_json = |key: &&str| {
            let extension = Path::new(key).extension();
            extension.is_some_and(|extension| extension == "json")
        };
        let of_folder: Vec<&str> = all()
            .filter(|key| key.starts_with(&folder))
            .filter(is_json)
            .collect();
        wanted.extend(of_folder.iter().rev().take(OBJECTS));
    }
    wanted
}

async fn add_consoles(
    fleet: &Fleet,
    inspector: &Inspector<'_>,
    archive: &mut Archive,
) -> io::Result<()> {
    let clients = &inspector.cluster().clients;
    let ids = fleet.instances.iter().map(|one| one.instance.id.clone());
    let consoles = stream::iter(ids)
        .map(async |id| {
            let console = console_output(clients, &id).await;
            (id, console)
        })
        .buffered(PARALLEL);
    let consoles: Vec<_> = consoles.collect().await;
    for (id, console) in consoles {
        let text =
            console.map(|console| console.map_or_else(Vec::new, |one| one.text.into_bytes()));
        archive.add_result(&format!("cloud/consoles/{id}.txt"), text)?;
    }
    Ok(())
}

/// The nodes whose journal is read: control planes, then those that are not Ready, then others.
fn choose_nodes(fleet: &Fleet, most: usize) -> Vec<String> {
    let mut nodes: Vec<_> = fleet.nodes.iter().flatten().collect();
    nodes.sort_by_key(|node| (!node.is_control_plane(), node.ready, node.name.clone()));
    let names = nodes.into_iter().map(|node| node.name.clone());
    names.take(most).collect()
}
