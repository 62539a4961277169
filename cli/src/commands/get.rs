//! `kctl get`.

mod addons;
mod assets;
mod copy_assets;
mod instances;
mod keys;
mod operations;

use super::session::Session;
use super::{own_objects, secret};
use crate::args::{Get, GetKind, GetObjects, GetOutput, ListFormat};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::{self, ClusterState, OwnFiles, StoreKeys, store_error};
use crate::ui::table;
use futures::future::try_join_all;
use node::names::dns;
use node::yaml;
use serde::Serialize;
use spec::api::{Cluster, DnsType, InstanceGroup, InstanceGroupRole, Object};
use spec::read::{Document, ReadOptions, read_documents_with};
use spec::upgrade::OpenUpgrade;

/// Shows objects of the store.
pub async fn run(options: &Get, session: &Session<'_>) -> Result<Outcome, CommandError> {
    match &options.what {
        None => {
            show_clusters(
                &GetObjects {
                    object: None,
                    form: options.form,
                },
                session,
            )
            .await?;
        }
        Some(GetKind::Clusters(what)) => show_clusters(what, session).await?,
        Some(GetKind::InstanceGroups(what)) => show_groups(what, session).await?,
        Some(GetKind::Objects(what)) => own_objects::show_objects(what, session).await?,
        Some(GetKind::All(what)) => show_all(what, session).await?,
        Some(GetKind::Instances(what)) => instances::run(what, session).await?,
        Some(GetKind::Addons(what)) => addons::run(what, session).await?,
        Some(GetKind::Assets(what)) => assets::run(what, session).await?,
        Some(GetKind::SshPublicKeys(what)) => keys::show_ssh_keys(what, session).await?,
        Some(GetKind::KeyPairs(what)) => keys::show_key_pairs(what, session).await?,
        Some(GetKind::Secrets(what)) => secret::show_secrets(what, session).await?,
        Some(GetKind::Operations(what)) => operations::run(what, session).await?,
    }
    Ok(Outcome::Fine)
}

async fn show_clusters(args: &GetObjects, session: &Session<'_>) -> Result<(), CommandError> {
    let names = match &args.object {
        Some(name) => {
            session.check_cluster_exists(name).await?;
            vec![name.clone()]
        }
        None => state::cluster_names(&session.store).await?,
    };
    if args.form.output == ListFormat::Name {
        return print_lines(session, names.iter().map(|name| format!("cluster/{name}")));
    }
    let read = names
        .iter()
        .map(|name| read_cluster(session, name, args.form.full));
    let objects = try_join_all(read).await?;
    let single = args.object.is_some();
    match args.form.output {
        ListFormat::Yaml | ListFormat::Json => {
            print_documents(session, &objects, args.form, single)
        }
        _ if objects.is_empty() => {
            session
                .shell
                .note(&format!("no clusters in {}", session.url));
            Ok(())
        }
        form => {
            let table = cluster_table(&objects, form == ListFormat::Wide);
            session.shell.print_result(&table)?;
            note_upgrades(&objects, session);
            Ok(())
        }
    }
}

/// Says which clusters have an upgrade in their spec that has not ended.
fn note_upgrades(clusters: &[Cluster], session: &Session<'_>) {
    for cluster in clusters {
        if let Some(upgrade) = OpenUpgrade::of_spec(cluster) {
            let said = format!("{}: {}", cluster.name(), upgrade.describe());
            session.shell.note(&said);
        }
    }
}

/// Reads the Cluster object as the user wrote it or, with `full`, as the last update completed it.
async fn read_cluster(
    session: &Session<'_>,
    name: &str,
    full: bool,
) -> Result<Cluster, CommandError> {
    let keys = StoreKeys::new(name);
    let key = if full {
        keys.completed()
    } else {
        keys.config()
    };
    let object = session.store.get(&key).await.map_err(store_error)?.ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Precondition,
            format!("{key} is not in the state store"),
            "the full spec is written by `kctl update --yes`; `kctl render` shows it without AWS",
        )
    })?;
    let text = String::from_utf8_lossy(&object.bytes).into_owned();
    let read = read_documents_with(&key, &text, ReadOptions::AS_STORED)?;
    let found = read.into_iter().find_map(|document| match document.object {
        Object::Cluster(cluster) => Some(cluster),
        _ => None,
    });
    found.ok_or_else(|| {
        CommandError::usage_error(
            format!("{key} holds no Cluster"),
            "restore it from the bucket's versions",
        )
    })
}

fn cluster_table(clusters: &[Cluster], wide: bool) -> String {
    let mut headers = vec!["NAME", "CLOUD", "ZONES"];
    if wide {
        headers.extend(["VERSION", "NETWORK", "DNS", "API", "EMULATES"]);
    }
    let row = |cluster: &Cluster| {
        let spec = &cluster.spec;
        let mut zones: Vec<&str> = spec
            .subnets
            .iter()
            .map(|subnet| subnet.zone.as_str())
            .collect();
        zones.sort_unstable();
        zones.dedup();
        let mut row = vec![cluster.name().to_owned(), "aws".to_owned(), zones.join(",")];
        if wide {
            let dns = spec
                .topology
                .as_ref()
                .and_then(|topology| topology.dns.as_ref())
                .and_then(|dns| dns.type_);
            let dns = match dns {
                Some(DnsType::Public) => "Public",
                Some(DnsType::Private) => "Private",
                Some(DnsType::None) => "None",
                None => "",
            };
            row.extend([
                spec.kubernetes_version.clone().unwrap_or_default(),
                spec.network_cidr
                    .clone()
                    .or_else(|| spec.network_id.clone())
                    .unwrap_or_default(),
                dns.to_owned(),
                spec.master_public_name
                    .clone()
                    .unwrap_or_else(|| dns::api_name(cluster.name())),
                OpenUpgrade::of_spec(cluster)
                    .map(|upgrade| upgrade.emulates)
                    .unwrap_or_default(),
            ]);
        }
        row
    };
    table::render(&headers, &clusters.iter().map(row).collect::<Vec<_>>())
}

async fn show_groups(args: &GetObjects, session: &Session<'_>) -> Result<(), CommandError> {
    let name = session.cluster_name(None).await?;
    let state = ClusterState::read(&session.store, &name, ReadOptions::AS_STORED).await?;
    let groups = match &args.object {
        Some(only) => vec![state.group(only)?.object.clone()],
        None => state.group_objects(),
    };
    match args.form.output {
        ListFormat::Name => print_lines(
            session,
            groups
                .iter()
                .map(|group| format!("instancegroup/{}", group.name())),
        ),
        ListFormat::Yaml | ListFormat::Json => {
            print_documents(session, &groups, args.form, args.object.is_some())
        }
        form => session.shell.print_result(&group_table(
            &groups,
            &state.cluster.object,
            form == ListFormat::Wide,
        )),
    }
}

fn group_table(groups: &[InstanceGroup], cluster: &Cluster, wide: bool) -> String {
    let mut headers = vec!["NAME", "ROLE", "MACHINETYPE", "MIN", "MAX", "ZONES"];
    if wide {
        headers.extend(["SUBNETS", "IMAGE"]);
    }
    let row = |group: &InstanceGroup| {
        let spec = &group.spec;
        let subnet = |name: &String| {
            cluster
                .spec
                .subnets
                .iter()
                .find(|subnet| subnet.name == *name)
        };
        let mut zones: Vec<&str> = spec
            .subnets
            .iter()
            .filter_map(subnet)
            .map(|subnet| subnet.zone.as_str())
            .collect();
        zones.extend(spec.zones.iter().map(String::as_str));
        zones.sort_unstable();
        zones.dedup();
        let number =
            |number: Option<i32>| number.map(|number| number.to_string()).unwrap_or_default();
        let mut row = vec![
            group.name().to_owned(),
            role_name(spec.role).to_owned(),
            spec.machine_type.clone().unwrap_or_default(),
            number(spec.min_size),
            number(spec.max_size),
            zones.join(","),
        ];
        if wide {
            row.extend([
                spec.subnets.join(","),
                spec.image.clone().unwrap_or_default(),
            ]);
        }
        row
    };
    table::render(&headers, &groups.iter().map(row).collect::<Vec<_>>())
}

async fn show_all(args: &GetObjects, session: &Session<'_>) -> Result<(), CommandError> {
    let name = session.cluster_name(args.object.as_deref()).await?;
    let state = ClusterState::read(&session.store, &name, ReadOptions::AS_STORED).await?;
    let groups = state.group_objects();
    match args.form.output {
        ListFormat::Yaml | ListFormat::Json => {
            let own = OwnFiles::read(&session.store, &state.keys, &state.entries).await?;
            let spec = state.documents.iter();
            let spec = spec.map(|Document { object, .. }| Shown::Spec(object));
            let own = own.objects().map(|own| Shown::Own(&own.object));
            let objects: Vec<Shown<'_>> = spec.chain(own).collect();
            print_documents(session, &objects, args.form, false)
        }
        ListFormat::Name => {
            let names = groups
                .iter()
                .map(|group| format!("instancegroup/{}", group.name()));
            print_lines(
                session,
                std::iter::once(format!("cluster/{name}")).chain(names),
            )
        }
        form => {
            let wide = form == ListFormat::Wide;
            let cluster = state.cluster.object;
            let clusters = cluster_table(std::slice::from_ref(&cluster), wide);
            session.shell.print_result(&format!(
                "{clusters}\n{}",
                group_table(&groups, &cluster, wide)
            ))?;
            note_upgrades(std::slice::from_ref(&cluster), session);
            Ok(())
        }
    }
}

/// An object of a cluster.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Spec(&'a Object),
    Own(&'a serde_json::Value),
}

/// YAML documents as kOps prints them; or one JSON document: the object if one was named, else a list.
pub fn print_documents<T: Serialize>(
    session: &Session<'_>,
    objects: &[T],
    form: GetOutput,
    single: bool,
) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let text = if form.output == ListFormat::Json {
        match (objects, single) {
            ([only], true) => serde_json::to_string_pretty(only),
            _ => serde_json::to_string_pretty(objects),
        }
        .or_failed("the objects have no JSON form", DEFECT)?
    } else {
        yaml::to_yaml_documents(objects).or_failed("the objects have no YAML form", DEFECT)?
    };
    session.shell.print_document(&text)
}

fn print_lines(
    session: &Session<'_>,
    lines: impl IntoIterator<Item = String>,
) -> Result<(), CommandError> {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    session.shell.print_result(&text)
}

/// A role as kOps writes it in tables; empty for `None`.
fn role_name(role: Option<InstanceGroupRole>) -> &'static str {
    match role {
        Some(InstanceGroupRole::ControlPlane) => "ControlPlane",
        Some(InstanceGroupRole::Node) => "Node",
        Some(InstanceGroupRole::Bastion) => "Bastion",
        Some(InstanceGroupRole::ApiServer) => "APIServer",
        None => "",
    }
}
