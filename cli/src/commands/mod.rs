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
    BundleWhat, Cli, Command, Create, CreateWhat, DeleteWhat, DistrustWhat, ExportWhat,
    GlobalOptions, PromoteWhat, ToolboxWhat, TrustWhat,
};
use crate::error::{CommandError, Outcome};
use crate::ui::Shell;
use session::Session;
use std::future::ready;
use std::pin::Pin;

pub async fn run(cli: &Cli, shell: &Shell) -> Result<Outcome, CommandError> {
    let terms = (&cli.global, shell);
    let running = match &cli.command {
        Command::Create(Create {
            what: Some(CreateWhat::Cluster(what)),
            ..
        }) if what.dry_run => return create_cluster::dry_run(what, &cli.global, shell),
        Command::Create(what) => start_create(what, terms),
        Command::Get(what) => start(terms, async |session| get::run(what, session).await),
        Command::Edit(what) => start(terms, async |session| edit::run(what, session).await),
        Command::Replace(what) => start(terms, async |session| {
            store_objects::replace_from_files(what, &cli.global, session).await
        }),
        Command::Delete(what) => start_delete(&what.what, terms),
        Command::Update(what) => start(terms, async |session| update::run(what, session).await),
        Command::RollingUpdate(what) => start(terms, async |session| {
            rolling_update::run(what, session).await
        }),
        Command::Reconcile(what) => {
            start(terms, async |session| reconcile::run(what, session).await)
        }
        Command::Upgrade(what) => start(terms, async |session| upgrade::run(what, session).await),
        Command::Promote(what) => match &what.what {
            PromoteWhat::Keypair(what) => {
                start(terms, async |session| keypair::promote(what, session).await)
            }
        },
        Command::Trust(what) => match &what.what {
            TrustWhat::Keypair(what) => {
                start(terms, async |session| keypair::trust(what, session).await)
            }
        },
        Command::Distrust(what) => match &what.what {
            DistrustWhat::Keypair(what) => start(terms, async |session| {
                keypair::distrust(what, session).await
            }),
        },
        Command::Preflight(what) => {
            start(terms, async |session| preflight::run(what, session).await)
        }
        Command::Validate(what) => start(terms, async |session| validate::run(what, session).await),
        Command::Report(what) => start(terms, async |session| report::run(what, session).await),
        Command::Dashboard(what) => {
            start(terms, async |session| dashboard::run(what, session).await)
        }
        Command::Etcd(what) => start(terms, async |session| etcd::run(&what.what, session).await),
        Command::Bundle(what) => start_bundle(&what.what, terms),
        Command::Lock(what) => start(terms, async |session| lock::run(&what.what, session).await),
        Command::Export(what) => match &what.what {
            ExportWhat::Kubeconfig(what) => {
                start(terms, async |session| export::run(what, session).await)
            }
        },
        Command::Toolbox(what) => start_toolbox(&what.what, terms),
        Command::Render(what) => return render::run(what, shell),
        Command::Explain(what) => return explain::run(what, shell),
        Command::Schema(what) => return schema::run(what, shell),
        Command::Completion(options) => return completion::run(options.shell, shell),
        Command::Reference(options) => return reference::run(&options.out, shell),
        Command::Version(options) => return version::run(options, shell),
    };
    running.await
}

fn start_create<'a>(what: &'a Create, terms: Terms<'a>) -> Running<'a> {
    match &what.what {
        None => start(terms, async |session| {
            store_objects::create_from_files(&what.objects, terms.0, session).await
        }),
        Some(CreateWhat::Cluster(what)) => start(terms, async |session| {
            create_cluster::run(what, terms.0, session).await
        }),
        Some(CreateWhat::InstanceGroup(what)) => start(terms, async |session| {
            create_group::run(what, session).await
        }),
        Some(CreateWhat::Secret(what)) => start(terms, async |session| {
            secret::create_secret(what, session).await
        }),
        Some(CreateWhat::Keypair(what)) => {
            start(terms, async |session| keypair::create(what, session).await)
        }
    }
}

fn start_delete<'a>(what: &'a DeleteWhat, terms: Terms<'a>) -> Running<'a> {
    match what {
        DeleteWhat::Cluster(what) => start(terms, async |session| {
            delete_cluster::run(what, session).await
        }),
        DeleteWhat::InstanceGroup(what) => start(terms, async |session| {
            delete_group::run(what, session).await
        }),
        DeleteWhat::Instance(what) => start(terms, async |session| {
            delete_instance::run(what, session).await
        }),
        DeleteWhat::Object(what) => start(terms, async |session| {
            own_objects::delete_object(what, session).await
        }),
        DeleteWhat::Secret(what) => start(terms, async |session| {
            secret::delete_secret(what, session).await
        }),
        DeleteWhat::SshPublicKey(what) => start(terms, async |session| {
            ssh_keys::run_delete(what, session).await
        }),
    }
}

fn start_toolbox<'a>(what: &'a ToolboxWhat, terms: Terms<'a>) -> Running<'a> {
    match what {
        ToolboxWhat::Cis(what) => {
            start(terms, async |session| toolbox_cis::run(what, session).await)
        }
        ToolboxWhat::Dump(what) => start(terms, async |session| {
            toolbox_dump::run(what, session).await
        }),
    }
}

fn start_bundle<'a>(what: &'a BundleWhat, terms: Terms<'a>) -> Running<'a> {
    match what {
        BundleWhat::Create(what) => {
            start(terms, async |session| bundle::create(what, session).await)
        }
        BundleWhat::Verify(what) => Box::pin(ready(bundle::verify(what, terms.1))),
        BundleWhat::Push(what) => start(terms, async |session| bundle::push(what, session).await),
    }
}

/// What a session is opened with.
type Terms<'a> = (&'a GlobalOptions, &'a Shell);

/// A command under way, on the heap: dozens of futures, each of them large, do not fit on the stack of the function that awaits one.
type Running<'a> = Pin<Box<dyn Future<Output = Result<Outcome, CommandError>> + 'a>>;

/// Opens a session and runs `command` in it. The future is made here, so that the caller has no place for it on its stack.
fn start<'a>(
    (global, shell): Terms<'a>,
    command: impl AsyncFnOnce(&Session<'_>) -> Result<Outcome, CommandError> + 'a,
) -> Running<'a> {
    Box::pin(async move {
        let session = Session::open(global, shell).await?;
        command(&session).await
    })
}
