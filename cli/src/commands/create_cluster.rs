//! `kctl create cluster`: flags to a spec, the spec into the store, then as `kctl update`.

use super::edit::apply_setters;
use super::objects::{Objects, read_text};
use super::session::{Session, named, store_url};
use super::update::{How, update};
use super::{look, store_objects};
use crate::args::{
    Authorization, CreateCluster, Dns, Global, KopsOnly, LoadBalancerType, PlanFormat, SpecFormat,
    Topology,
};
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::state::{Keys, store_error};
use crate::ui::Shell;
use cloud::facts::Facts;
use node::yaml;
use spec::api::Object;
use spec::api::cluster::ClusterSpec;
use spec::create::{CreateOptions, create, wanted_facts};
use spec::read::{Document, ReadOptions, read_documents_with};

/// Prints the spec and stores nothing. Asks nobody.
pub fn dry_run(
    what: &CreateCluster,
    options: &Global,
    shell: &Shell,
) -> Result<Outcome, CommandError> {
    let url = store_url(options, shell)?;
    let objects = spec(what, options, &url, &made_up(), shell)?;
    if what.network_id.is_some() || !what.subnets.is_empty() {
        shell.warning(
            "AWS was not asked about the VPC and subnets: their zones and ranges are guesses",
        );
    }
    let text = match what.output.unwrap_or_default() {
        SpecFormat::Yaml => yaml::to_yaml_documents(&objects.in_order())
            .failed("the spec has no YAML form", DEFECT)?,
        SpecFormat::Json => serde_json::to_string_pretty(&objects.in_order())
            .failed("the spec has no JSON form", DEFECT)?,
    };
    shell.document(&text)?;
    Ok(Outcome::Fine)
}

/// Refuses the name of a cluster that the store has.
async fn is_new(name: &str, session: &Session<'_>) -> Result<(), CommandError> {
    if name.is_empty() {
        return Ok(());
    }
    let stored = session.store.get(&Keys::of(name).config()).await;
    match stored.map_err(store_error)? {
        None => Ok(()),
        Some(_) => Err(CommandError::said(
            Kind::Precondition,
            format!("cluster {name} exists already in {}", session.url),
            format!(
                "`kctl update {name}` shows what would change in AWS; `kctl edit cluster {name}` changes its spec"
            ),
        )),
    }
}

/// Stores the spec, then shows the plan; with `--yes` makes the cluster.
pub async fn run(
    what: &CreateCluster,
    options: &Global,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    only_kctl(&what.kops)?;
    let name = named(options, what.cluster.as_deref())?.unwrap_or_default();
    let ssh_key = what
        .access
        .ssh_public_key
        .as_deref()
        .map(read_text)
        .transpose()?;
    is_new(&name, session).await?;
    let flags = create_options(what, name.clone(), &session.url);
    let wanted = wanted_facts(&flags);
    let clients = session.cloud_clients(wanted.region.as_deref());
    let facts = match wanted.region {
        Some(_) => look::facts(&clients, &wanted).await?,
        // Without zones there is nobody to ask, and nothing to create either.
        None => made_up(),
    };
    let objects = spec(what, options, &session.url, &facts, session.shell)?;
    look::can_complete(&objects, ssh_key.as_deref(), &clients, session).await?;
    store_objects::write_new(&name, &objects, ssh_key.as_deref(), session).await?;
    let kubeconfig = what.create_kube_config.unwrap_or(true);
    let how = How {
        yes: what.yes,
        output: PlanFormat::Table,
        exit_code: false,
        refresh: false,
        looking: look::Looking {
            read: ReadOptions {
                allow_unsupported: what.allow_unsupported,
            },
            ignore_skew: false,
        },
        lock_wait: None,
        kubeconfig: kubeconfig.then(|| what.credentials.clone()),
        plan_out: None,
    };
    update(&name, &how, session).await
}

fn made_up() -> Facts {
    Facts {
        stand_in: true,
        ..Facts::default()
    }
}

const DEFECT: &str = "report this: it is a defect of kctl";

/// The checked spec of the flags.
fn spec(
    what: &CreateCluster,
    options: &Global,
    store_url: &str,
    facts: &Facts,
    shell: &Shell,
) -> Result<Objects, CommandError> {
    only_kctl(&what.kops)?;
    let name = named(options, what.cluster.as_deref())?.unwrap_or_default();
    let made = create(&create_options(what, name, store_url), facts)?;
    made.warnings
        .iter()
        .for_each(|warning| shell.problem(warning));
    let mut cluster = made.cluster;
    apply_setters(&mut cluster, &what.setters)?;
    open_doors(&cluster.spec)
        .iter()
        .for_each(|warning| shell.warning(warning));
    let mut objects = Objects::new(cluster.clone());
    let read = ReadOptions {
        allow_unsupported: what.allow_unsupported,
    };
    objects.put(&document(&Object::Cluster(cluster), read)?);
    for group in made.groups {
        objects.put(&document(&Object::InstanceGroup(group), read)?);
    }
    objects.check(shell)?;
    Ok(objects)
}

/// What everybody may reach of a new cluster, which is kOps' default.
fn open_doors(spec: &ClusterSpec) -> Vec<String> {
    let everybody = |ranges: &[String]| {
        let mut ranges = ranges.iter();
        ranges.any(|range| ["0.0.0.0/0", "::/0"].contains(&range.as_str()))
    };
    let doors = [
        ("the API", &spec.kubernetes_api_access, "--admin-access"),
        ("port 22 (SSH)", &spec.ssh_access, "--ssh-access"),
    ];
    let open = doors.iter().filter(|(_, ranges, _)| everybody(ranges));
    open.map(|(what, _, flag)| {
        format!("{what} is open to everybody, as with kOps: {flag} names who may reach it")
    })
    .collect()
}

/// The object as a file would have it: what a file may not say, a flag may not either.
fn document(object: &Object, read: ReadOptions) -> Result<Document, CommandError> {
    let text = yaml::to_yaml(object).failed("the spec has no YAML form", DEFECT)?;
    let name = format!("{} {}", object.kind(), object.metadata().name);
    let mut documents = read_documents_with(&name, &text, read)?;
    documents
        .pop()
        .ok_or_else(|| CommandError::usage("the flags make no spec", DEFECT))
}

fn create_options(what: &CreateCluster, name: String, store_url: &str) -> CreateOptions {
    let (machines, access, software) = (&what.machines, &what.access, &what.software);
    CreateOptions {
        name,
        state_store: store_url.to_owned(),
        zones: what.zones.clone(),
        control_plane_zones: machines.control_plane_zones.clone(),
        control_plane_count: machines.control_plane_count,
        node_count: machines.node_count,
        control_plane_sizes: machines.control_plane_size.clone(),
        node_sizes: machines.node_size.clone(),
        image: machines.image.clone(),
        control_plane_image: machines.control_plane_image.clone(),
        node_image: machines.node_image.clone(),
        bastion_image: machines.bastion_image.clone(),
        control_plane_volume_size: machines.control_plane_volume_size,
        control_plane_volume_type: machines.control_plane_volume_type.clone(),
        node_volume_size: machines.node_volume_size,
        node_volume_type: machines.node_volume_type.clone(),
        control_plane_tenancy: machines.control_plane_tenancy.clone(),
        node_tenancy: machines.node_tenancy.clone(),
        control_plane_security_groups: machines.control_plane_security_groups.clone(),
        node_security_groups: machines.node_security_groups.clone(),
        associate_public_ip: machines.associate_public_ip,
        bastion: access.bastion,
        topology: match what.topology {
            Some(Topology::Private) => spec::create::Topology::Private,
            Some(Topology::Public) | None => spec::create::Topology::Public,
        },
        dns: access.dns.map(|dns| match dns {
            Dns::None => spec::api::DnsType::None,
            Dns::Public => spec::api::DnsType::Public,
            Dns::Private => spec::api::DnsType::Private,
        }),
        dns_zone: access.dns_zone.clone(),
        networking: software.networking.clone(),
        network_cidrs: what.network_cidr.clone(),
        network_id: what.network_id.clone(),
        subnets: what.subnets.clone(),
        utility_subnets: what.utility_subnets.clone(),
        egress: what.egress.clone(),
        disable_subnet_tags: what.disable_subnet_tags,
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
        encrypt_etcd_storage: machines.encrypt_etcd_storage,
        etcd_storage_type: machines.etcd_storage_type.clone(),
        cloud_labels: machines.cloud_labels.clone(),
    }
}

/// Refuses, with the reason, what only kOps does.
fn only_kctl(kops: &KopsOnly) -> Result<(), CommandError> {
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
        _ if kops.ipv6 => ("--ipv6", "kctl does not do IPv6 pods yet", "leave it out"),
        _ if kops.discovery_store.is_some() => (
            "--discovery-store",
            "kctl does not publish service account keys yet",
            "leave it out",
        ),
        _ if other(&kops.instance_manager, "cloudgroups") => (
            "--instance-manager",
            "kctl does Auto Scaling groups, not Karpenter",
            "leave it out",
        ),
        _ => return Ok(()),
    };
    Err(CommandError::usage(format!("{flag}: {why}"), instead))
}
