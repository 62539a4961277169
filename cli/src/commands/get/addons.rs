//! `kctl get addons`: the addons of a cluster, their versions, whether they work, and what somebody has changed of them.

use crate::api::{ApiQuery, read_addon_objects};
use crate::args::{GetAddons, ListFormat};
use crate::commands::inspect::Inspector;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::{StoreKeys, store_error};
use crate::ui::table;
use fleet::{AddonState, AddonStatus, judge_addon};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use node::addons::{CHANNEL_KEY, ChannelAddon, read_channel, read_manifest};
use node::protokube::ADDON_RECORD;
use node::yaml;
use serde_json::Value;
use std::collections::BTreeMap;

const DEFECT: &str = "report this: it is a defect of kctl";

/// Shows the addons of a cluster, in the order in which they are applied.
pub async fn run(args: &GetAddons, session: &Session<'_>) -> Result<(), CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let mut inspector = Inspector::open(&name, ApiQuery::Nodes, &args.reach, session).await?;
    let list = read_addons(&StoreKeys::new(&name), session).await?;
    let client = inspector.connect().await?;
    let read = async {
        let record = read_record(&client).await?;
        let manifests: Vec<Vec<Value>> = list.iter().map(|(_, objects)| objects.clone()).collect();
        Ok((record, read_addon_objects(&client, &manifests).await?))
    };
    let (record, objects) = read.await.map_err(|error| inspector.explain(&error))?;
    let addons = list
        .iter()
        .zip(&objects)
        .map(|((addon, manifest), objects)| {
            let applied = record.get(&addon.name) == Some(&addon.manifest_hash);
            judge_addon(&addon.name, manifest, applied, objects)
        });
    let addons: Vec<AddonStatus> = addons.collect();
    print(&addons, args.output, session)
}

/// The list of addons with their objects, from the store.
async fn read_addons(
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<Vec<(ChannelAddon, Vec<Value>)>, CommandError> {
    const AGAIN: &str = "run `kctl update --yes`, which writes it";
    let read = |key: String| async move {
        let object = session.store.get(&key).await.map_err(store_error)?;
        let object = object.ok_or_else(|| {
            let message = format!("{key} is not in the state store");
            CommandError::from_message(ErrorKind::Precondition, message, AGAIN)
        })?;
        Ok::<_, CommandError>(String::from_utf8_lossy(&object.bytes).into_owned())
    };
    let text = read(keys.key_below(CHANNEL_KEY)).await?;
    let list = read_channel(&text).or_failed("the list of addons cannot be read", AGAIN)?;
    let mut all = Vec::new();
    for addon in list.spec.addons {
        let key = addon.manifest_key();
        let text = read(keys.key_below(&key)).await?;
        let objects = read_manifest(&key, &text);
        all.push((
            addon,
            objects.or_failed("a manifest cannot be read", AGAIN)?,
        ));
    }
    Ok(all)
}

/// The sha256 of each manifest that protokube has applied completely, by addon.
async fn read_record(client: &Client) -> Result<BTreeMap<String, String>, kube::Error> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
    let data = maps.get_opt(ADDON_RECORD).await?.and_then(|map| map.data);
    let entries = data.unwrap_or_default().into_iter();
    let applied = entries.filter_map(|(name, text)| {
        let entry = serde_json::from_str::<Value>(&text).ok()?;
        Some((name, entry.get("sha256")?.as_str()?.to_owned()))
    });
    Ok(applied.collect())
}

fn print(
    addons: &[AddonStatus],
    form: ListFormat,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let shell = &session.shell;
    match form {
        ListFormat::Name => {
            let names = addons.iter().map(|addon| format!("addon/{}\n", addon.name));
            shell.print_result(&names.collect::<String>())
        }
        ListFormat::Json => {
            let text = serde_json::to_string_pretty(addons);
            shell.print_document(&text.or_failed("the addons have no JSON form", DEFECT)?)
        }
        ListFormat::Yaml => {
            let text = yaml::to_yaml(&addons);
            shell.print_document(&text.or_failed("the addons have no YAML form", DEFECT)?)
        }
        ListFormat::Table | ListFormat::Wide => {
            let rows: Vec<Vec<String>> = addons.iter().map(row).collect();
            let headers = ["NAME", "VERSION", "STATE", "CHANGED"];
            shell.print_result(&table::render(&headers, &rows))?;
            for addon in addons {
                let lines = addon.problems.iter();
                lines.for_each(|line| shell.warning(&format!("{}: {line}", addon.name)));
            }
            let changed: Vec<&String> = addons.iter().flat_map(|addon| &addon.differs).collect();
            for line in &changed {
                shell.note(&format!("changed: {line}"));
            }
            if !changed.is_empty() {
                shell.hint("protokube writes changed fields back only with the next manifest");
            }
            Ok(())
        }
    }
}

fn row(addon: &AddonStatus) -> Vec<String> {
    let state = match addon.state {
        AddonState::Healthy => "healthy",
        AddonState::Unhealthy => "unhealthy",
        AddonState::Pending => "pending",
    };
    let changed = match addon.differs.len() {
        0 => String::new(),
        1 => "1 field".to_owned(),
        count => format!("{count} fields"),
    };
    vec![
        addon.name.clone(),
        addon.version.clone().unwrap_or_default(),
        state.to_owned(),
        changed,
    ]
}
