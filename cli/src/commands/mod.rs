//! What each command does, without its argv.

mod apply_plan;
mod assemble;
mod assets;
mod backups;
mod bundle;
mod cluster_scope;
mod completion;
mod create_cluster;
mod create_group;
mod dashboard;
mod delete_cluster;
mod delete_group;
mod delete_instance;
mod document;
mod edit;
mod etcd;
mod existing_cluster;
mod explain;
mod export;
mod get;
mod inspect;
mod keypair;
mod lock;
mod look;
mod node_configs;
mod observe;
mod own_addons;
mod own_objects;
mod ownership;
mod preflight;
mod reconcile;
mod reference;
mod removal;
mod render;
mod report;
mod rolling_update;
mod schema;
mod secret;
mod session;
mod spec_log;
mod spec_objects;
mod ssh_keys;
mod store_objects;
mod store_place;
mod toolbox_cis;
mod toolbox_dump;
mod update;
mod upgrade;
mod validate;
mod version;
mod version_skew;

use crate::args::{
    BundleWhat, Cli, Command, CreateWhat, DeleteWhat, DistrustWhat, ExportWhat, PromoteWhat,
    ToolboxWhat, TrustWhat,
};
use crate::error::{CommandError, Outcome};
use crate::ui::Shell;
use session::Session;

pub async fn run(cli: &Cli, shell: &Shell) -> Result<Outcome, CommandError> {
    let open = || Session::open(&cli.global, shell);
    match &cli.command {
        Command::Create(what) => match &what.what {
            None => {
                store_objects::create_from_files(&what.objects, &cli.global, &open().await?).await
            }
            Some(CreateWhat::Cluster(what)) if what.dry_run => {
                create_cluster::dry_run(what, &cli.global, shell)
            }
            Some(CreateWhat::Cluster(what)) => {
                create_cluster::run(what, &cli.global, &open().await?).await
            }
            Some(CreateWhat::InstanceGroup(what)) => create_group::run(what, &open().await?).await,
            Some(CreateWhat::Secret(what)) => secret::create_secret(what, &open().await?).await,
            Some(CreateWhat::Keypair(what)) => keypair::create(what, &open().await?).await,
        },
        Command::Get(what) => get::run(what, &open().await?).await,
        Command::Edit(what) => edit::run(what, &open().await?).await,
        Command::Replace(what) => {
            store_objects::replace_from_files(what, &cli.global, &open().await?).await
        }
        Command::Delete(what) => match &what.what {
            DeleteWhat::Cluster(what) => delete_cluster::run(what, &open().await?).await,
            DeleteWhat::InstanceGroup(what) => delete_group::run(what, &open().await?).await,
            DeleteWhat::Instance(what) => delete_instance::run(what, &open().await?).await,
            DeleteWhat::Object(what) => own_objects::delete_object(what, &open().await?).await,
            DeleteWhat::Secret(what) => secret::delete_secret(what, &open().await?).await,
            DeleteWhat::SshPublicKey(what) => ssh_keys::run_delete(what, &open().await?).await,
        },
        Command::Update(what) => update::run(what, &open().await?).await,
        Command::RollingUpdate(what) => rolling_update::run(what, &open().await?).await,
        Command::Reconcile(what) => reconcile::run(what, &open().await?).await,
        Command::Upgrade(what) => upgrade::run(what, &open().await?).await,
        Command::Promote(what) => match &what.what {
            PromoteWhat::Keypair(what) => keypair::promote(what, &open().await?).await,
        },
        Command::Trust(what) => match &what.what {
            TrustWhat::Keypair(what) => keypair::trust(what, &open().await?).await,
        },
        Command::Distrust(what) => match &what.what {
            DistrustWhat::Keypair(what) => keypair::distrust(what, &open().await?).await,
        },
        Command::Preflight(what) => preflight::run(what, &open().await?).await,
        Command::Validate(what) => validate::run(what, &open().await?).await,
        Command::Report(what) => report::run(what, &open().await?).await,
        Command::Dashboard(what) => dashboard::run(what, &open().await?).await,
        Command::Etcd(what) => etcd::run(&what.what, &open().await?).await,
        Command::Bundle(what) => match &what.what {
            BundleWhat::Create(what) => bundle::create(what, &open().await?).await,
            BundleWhat::Verify(what) => bundle::verify(what, shell),
            BundleWhat::Push(what) => bundle::push(what, &open().await?).await,
        },
        Command::Lock(what) => lock::run(&what.what, &open().await?).await,
        Command::Export(what) => match &what.what {
            ExportWhat::Kubeconfig(what) => export::run(what, &open().await?).await,
        },
        Command::Toolbox(what) => match &what.what {
            ToolboxWhat::Cis(what) => toolbox_cis::run(what, &open().await?).await,
            ToolboxWhat::Dump(what) => toolbox_dump::run(what, &open().await?).await,
        },
        Command::Render(what) => render::run(what, shell),
        Command::Explain(what) => explain::run(what, shell),
        Command::Schema(what) => schema::run(what, shell),
        Command::Completion(options) => completion::run(options.shell, shell),
        Command::Reference(options) => reference::run(&options.out, shell),
        Command::Version(options) => version::run(options, shell),
    }
}
