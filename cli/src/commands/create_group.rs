//! `kctl create instancegroup`: adds an instance group to a cluster's spec. What no option says, expansion fills in at the next
//! update.

use super::edit::apply_setters;
use super::session::Session;
use super::spec_objects::SpecObjects;
use super::store_objects::{StorePolicy, check_policy, write_and_log};
use crate::args::{CreateGroup, GroupRole, SpecFormat};
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::state::ClusterState;
use spec::api::cluster::ClusterSpec;
use spec::api::instance_group::InstanceGroupSpec;
use spec::api::{InstanceGroup, InstanceGroupRole, Object, SubnetType};
use spec::create::labelled_group;
use spec::read::{ReadOptions, read_documents_with};

const DEFECT: &str = "report this: it is a defect of kctl";

/// Stores the group, or prints it.
pub async fn run(args: &CreateGroup, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let read = ReadOptions::AS_STORED;
    let state = ClusterState::read(&session.store, &name, read).await?;
    let mut group = group_from_flags(args, &name, &state.cluster.object.spec);
    apply_setters(&mut group, &args.setters)?;
    let object = Object::InstanceGroup(group);
    let text = node::yaml::to_yaml_documents(std::slice::from_ref(&object));
    let text = text.or_failed("the instance group has no YAML form", DEFECT)?;
    let documents = read_documents_with("the new instance group", &text, ReadOptions::default())?;
    let mut objects = SpecObjects::from_state(&state);
    for document in &documents {
        let policy = StorePolicy {
            create: true,
            replace: false,
        };
        check_policy(document, Some(&state), policy)?;
        objects.put_document(document);
    }
    let stored = Some(&state.cluster.object);
    objects.check_new(stored, &session.url, session.shell)?;
    if args.dry_run {
        let text = match args.output.unwrap_or_default() {
            SpecFormat::Yaml => text,
            SpecFormat::Json => serde_json::to_string_pretty(&object)
                .or_failed("the instance group has no JSON form", DEFECT)?,
        };
        session.shell.print_document(&text)?;
        return Ok(Outcome::Fine);
    }
    let command = "create instancegroup";
    write_and_log(command, &name, Some(&state), &documents, session).await?;
    session.shell.hint(&format!(
        "kctl update {name} --yes    launches its instances"
    ));
    Ok(Outcome::Fine)
}

fn group_from_flags(args: &CreateGroup, cluster: &str, spec: &ClusterSpec) -> InstanceGroup {
    let subnets = if args.subnets.is_empty() {
        let subnets = spec.subnets.iter();
        let other = [Some(SubnetType::Utility), Some(SubnetType::DualStack)];
        let own = subnets.filter(|subnet| !other.contains(&subnet.type_));
        own.map(|subnet| subnet.name.clone()).collect()
    } else {
        args.subnets.clone()
    };
    let role = match args.role {
        GroupRole::Node => InstanceGroupRole::Node,
        GroupRole::Bastion => InstanceGroupRole::Bastion,
    };
    let group = InstanceGroupSpec {
        role: Some(role),
        machine_type: args.size.clone(),
        image: args.image.clone(),
        min_size: args.min_size,
        max_size: args.max_size,
        subnets,
        ..InstanceGroupSpec::default()
    };
    labelled_group(cluster, &args.group, group)
}
