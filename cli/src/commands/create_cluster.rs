//! `kctl create cluster`: flags to a spec, the spec into the store, then as `kctl update`.

use super::edit::apply_setters;
use super::secret::{self, MissingSecret};
use super::session::{Session, named_cluster, store_url};
use super::spec_objects::{SpecObjects, read_text};
use super::store_place::check_names_are_free;
use super::update::{KubeconfigChange, UpdateOptions, update_cluster};
use super::{observe, store_objects};
use crate::args::{
    Authorization, CreateCluster, Dns, GlobalOptions, KopsOnly, LoadBalancerType, SpecFormat,
    Topology,
};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::{ClusterState, StoreKeys, cluster_names, store_error};
use crate::ui::Shell;
use cloud::facts::Facts;
use node::yaml;
use spec::api::Object;
use spec::catalog::BOOTED_IMAGES;
use spec::create::{CreateOptions, create_cluster, wanted_facts};
use spec::read::{Document, ReadOptions, read_documents_with};

/// Prints the spec. Stores nothing and makes no AWS call.
pub fn dry_run(
    args: &CreateCluster,
    options: &GlobalOptions,
    shell: &Shell,
) -> Result<Outcome, CommandError> {
    required_name(args, options)?;
    read_ssh_key(args)?;
    let url = store_url(options, shell)?;
    let objects = spec_from_flags(args, options, &url, &made_up_facts(), shell)?;
    if args.network_id.is_some() || !args.subnets.is_empty() {
        shell.warning(
            "AWS was not asked about the VPC and subnets: their zones and ranges are guesses",
        );
    }
    let text = match args.output.unwrap_or_default() {
        SpecFormat::Yaml => yaml::to_yaml_documents(&objects.in_order())
            .or_failed("the spec has no YAML form", DEFECT)?,
        SpecFormat::Json => serde_json::to_string_pretty(&objects.in_order())
            .or_failed("the spec has no JSON form", DEFECT)?,
    };
    shell.print_document(&text)?;
    Ok(Outcome::Fine)
}

/// The name of the new cluster, before anything else is looked at.
fn required_name(args: &CreateCluster, options: &GlobalOptions) -> Result<String, CommandError> {
    named_cluster(options, args.cluster.as_deref())?.ok_or_else(|| {
        CommandError::usage_error(
            "the cluster has no name",
            "kctl create cluster NAME --zones ZONES, where NAME is for example demo.example.com",
        )
    })
}

/// The file of `--ssh-public-key`.
fn read_ssh_key(args: &CreateCluster) -> Result<Option<String>, CommandError> {
    let file = args.access.ssh_public_key.as_deref();
    file.map(read_text).transpose()
}

/// Fails if the store already has a cluster with that name.
async fn check_is_new(name: &str, session: &Session<'_>) -> Result<(), CommandError> {
    let stored = session.store.get(&StoreKeys::new(name).config()).await;
    match stored.map_err(store_error)? {
        None => {
            let existing = cluster_names(&session.store).await?;
            check_names_are_free(name, &existing, session)
        }
        Some(_) => Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("cluster {name} exists already in {}", session.url),
            format!(
                "`kctl update {name}` shows what would change in AWS; `kctl edit cluster {name}` changes its spec"
            ),
        )),
    }
}

/// Stores the spec, then shows the plan; with `--yes` makes the cluster.
pub async fn run(
    args: &CreateCluster,
    options: &GlobalOptions,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    check_kops_only(&args.kops)?;
    let name = required_name(args, options)?;
    let ssh_key = read_ssh_key(args)?;
    check_is_new(&name, session).await?;
    let flags = create_options(args, name.clone(), &session.url);
    let wanted = wanted_facts(&flags);
    let clients = session.cloud_clients(wanted.region.as_deref());
    let facts = match wanted.region {
        Some(_) => observe::account_facts(&clients, &wanted).await?,
        // Without zones there is no region to ask. The spec is refused later.
        None => made_up_facts(),
    };
    let objects = spec_from_flags(args, options, &session.url, &facts, session.shell)?;
    observe::check_can_expand(&objects, ssh_key.as_deref(), &clients, session).await?;
    store_objects::write_new(&name, &objects, ssh_key.as_deref(), session).await?;
    if let Some(missing) = find_missing_secret(&name, &objects, args, session).await? {
        return end_without_secret(missing, &name, args.yes, session);
    }
    let kubeconfig = match args.create_kube_config {
        Some(false) => KubeconfigChange::Leave,
        _ => KubeconfigChange::Write(args.credentials.clone()),
    };
    let how = UpdateOptions {
        yes: args.yes,
        observe: observe::ObserveOptions {
            read: ReadOptions {
                allow_unsupported: args.allow_unsupported,
            },
            ..observe::ObserveOptions::default()
        },
        kubeconfig,
        ..UpdateOptions::default()
    };
    update_cluster(&name, &how, session).await
}

/// A secret that the new cluster needs and that is not there. An earlier cluster of the name may have left one.
async fn find_missing_secret(
    name: &str,
    objects: &SpecObjects,
    args: &CreateCluster,
    session: &Session<'_>,
) -> Result<Option<MissingSecret>, CommandError> {
    if !secret::needs_secrets(&objects.cluster.spec) {
        return Ok(None);
    }
    let read = ReadOptions {
        allow_unsupported: args.allow_unsupported,
    };
    let state = ClusterState::read(&session.store, name, read).await?;
    Ok(secret::find_missing_secret(&state))
}

/// Ends a creation that has no plan yet. The spec stays stored: without it `kctl create secret` has no cluster.
fn end_without_secret(
    missing: MissingSecret,
    name: &str,
    yes: bool,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    if yes {
        let error = CommandError::from(missing);
        return Err(error.with_hint(format!(
            "kctl update {name} --yes    then creates the cluster; its spec is stored"
        )));
    }
    let shell = session.shell;
    shell.warning(&format!(
        "the spec of {name} is stored, and there is no plan yet. {}",
        missing.why
    ));
    shell.hint(&missing.next);
    shell.hint(&format!("kctl update {name}    then shows the plan"));
    Ok(Outcome::Fine)
}

fn made_up_facts() -> Facts {
    Facts {
        stand_in: true,
        ..Facts::default()
    }
}

const DEFECT: &str = "report this: it is a defect of kctl";

/// Makes the spec from the flags, and checks it.
fn spec_from_flags(
    args: &CreateCluster,
    options: &GlobalOptions,
    store_url: &str,
    facts: &Facts,
    shell: &Shell,
) -> Result<SpecObjects, CommandError> {
    check_kops_only(&args.kops)?;
    let name = required_name(args, options)?;
    let made = create_cluster(&create_options(args, name, store_url), facts)?;
    made.warnings
        .iter()
        .for_each(|warning| shell.print_problem(warning));
    shell.note(BOOTED_IMAGES);
    let mut cluster = made.cluster;
    apply_setters(&mut cluster, &args.setters)?;
    let mut objects = SpecObjects::new(cluster.clone());
    let read = ReadOptions {
        allow_unsupported: args.allow_unsupported,
    };
    objects.put_document(&document_of(&Object::Cluster(cluster), read)?);
    for group in made.groups {
        objects.put_document(&document_of(&Object::InstanceGroup(group), read)?);
    }
    objects.check_new(None, store_url, shell)?;
    Ok(objects)
}

/// The object written and read back as a document, so that flags are checked like files.
fn document_of(object: &Object, read: ReadOptions) -> Result<Document, CommandError> {
    let text = yaml::to_yaml(object).or_failed("the spec has no YAML form", DEFECT)?;
    let name = format!("{} {}", object.kind(), object.metadata().name);
    let mut documents = read_documents_with(&name, &text, read)?;
    documents
        .pop()
        .ok_or_else(|| CommandError::usage_error("the flags make no spec", DEFECT))
}

fn create_options(args: &CreateCluster, name: String, store_url: &str) -> CreateOptions {
    let (instances, access, software) = (&args.instances, &args.access, &args.software);
    CreateOptions {
        name,
        state_store: store_url.to_owned(),
        zones: args.zones.clone(),
        control_plane_zones: instances.control_plane_zones.clone(),
        control_plane_count: instances.control_plane_count,
        node_count: instances.node_count,
        control_plane_sizes: instances.control_plane_size.clone(),
        node_sizes: instances.node_size.clone(),
        image: instances.image.clone(),
        control_plane_image: instances.control_plane_image.clone(),
        node_image: instances.node_image.clone(),
        bastion_image: instances.bastion_image.clone(),
        control_plane_volume_size: instances.control_plane_volume_size,
        control_plane_volume_type: instances.control_plane_volume_type.clone(),
        node_volume_size: instances.node_volume_size,
        node_volume_type: instances.node_volume_type.clone(),
        control_plane_tenancy: instances.control_plane_tenancy.clone(),
        node_tenancy: instances.node_tenancy.clone(),
        control_plane_security_groups: instances.control_plane_security_groups.clone(),
        node_security_groups: instances.node_security_groups.clone(),
        associate_public_ip: instances.associate_public_ip,
        bastion: access.bastion,
        ipv6: args.ipv6,
        topology: match args.topology {
            Some(Topology::Private) => spec::create::Topology::Private,
            None if args.ipv6 => spec::create::Topology::Private,
            Some(Topology::Public) | None => spec::create::Topology::Public,
        },
        dns: access.dns.map(|dns| match dns {
            Dns::None => spec::api::DnsType::None,
            Dns::Public => spec::api::DnsType::Public,
            Dns::Private => spec::api::DnsType::Private,
        }),
        dns_zone: access.dns_zone.clone(),
        networking: software.networking.clone(),
        network_cidrs: args.network_cidr.clone(),
        network_id: args.network_id.clone(),
        subnets: args.subnets.clone(),
        utility_subnets: args.utility_subnets.clone(),
        egress: args.egress.clone(),
        disable_subnet_tags: args.disable_subnet_tags,
        kubernetes_version: software.kubernetes_version.clone(),
        kubernetes_feature_gates: software.kubernetes_feature_gates.clone(),
        channel: software.channel.clone(),
        admin_access: access.admin_access.clone(),
        ssh_access: access.ssh_access.clone(),
        authorization: match software.authorization {
            Some(Authorization::AlwaysAllow) => spec::create::Authorization::AlwaysAllow,
            Some(Authorization::Rbac) | None => spec::create::Authorization::Rbac,
        },
        api_load_balancer_type: access.api_loadbalancer_type.map(|kind| match kind {
            LoadBalancerType::Public => spec::api::LoadBalancerType::Public,
            LoadBalancerType::Internal => spec::api::LoadBalancerType::Internal,
        }),
        api_ssl_certificate: access.api_ssl_certificate.clone(),
        api_public_name: access.api_public_name.clone(),
        etcd_clusters: software.etcd_clusters.clone(),
        encrypt_etcd_storage: instances.encrypt_etcd_storage,
        etcd_storage_type: instances.etcd_storage_type.clone(),
        discovery_store: software.discovery_store.clone(),
        audit_log: software.audit_log,
        cloud_labels: instances.cloud_labels.clone(),
    }
}

/// Refuses options whose value only kOps supports.
fn check_kops_only(kops: &KopsOnly) -> Result<(), CommandError> {
    let other =
        |value: &Option<String>, ours: &str| value.as_deref().is_some_and(|value| value != ours);
    let (flag, why, instead) = match kops {
        _ if other(&kops.cloud, "aws") => {
            ("--cloud", "kctl does AWS and nothing else", "leave it out")
        }
        _ if other(&kops.target, "direct") || kops.out.is_some() => (
            "--target",
            "kctl makes AWS objects itself and writes nothing for other tools",
            "`kctl render` writes everything for review",
        ),
        _ if other(&kops.instance_manager, "cloudgroups") => (
            "--instance-manager",
            "kctl does Auto Scaling groups, not Karpenter",
            "leave it out",
        ),
        _ => return Ok(()),
    };
    Err(CommandError::usage_error(format!("{flag}: {why}"), instead))
}
