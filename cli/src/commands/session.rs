//! The state store, the AWS clients and the cluster name of one command.

use crate::args::GlobalOptions;
use crate::env;
use crate::error::CommandError;
use crate::state::{self, store_error};
use crate::ui::Shell;
use aws_client::Clients;
use aws_client::authorities::Authorities;
use aws_client::store::{Owner, Store};
use aws_cloud::CloudClients;

/// The store and the clients of one command.
#[derive(Debug)]
pub struct Session<'a> {
    pub shell: &'a Shell,
    /// URL of the state store.
    pub url: String,
    pub store: Store,
    /// AWS clients for the region of the environment.
    pub clients: Clients,
    options: &'a GlobalOptions,
}

impl<'a> Session<'a> {
    /// Opens the store. Makes no call.
    pub async fn open(options: &'a GlobalOptions, shell: &'a Shell) -> Result<Self, CommandError> {
        let url = store_url(options, shell)?;
        if let Some(warning) = Authorities::of_system().warning() {
            shell.warning(&warning);
        }
        let note_shell = shell.clone();
        let clients = Clients::load(None, None).await;
        let clients = clients.with_retry_listener(move |again| note_shell.note(&again.to_string()));
        let owner = env::first_variable(&[env::STATE_OWNER]).map_or(Owner::Caller, Owner::Account);
        let store = Store::open(&url, &clients).map_err(store_error)?;
        let store = store.owned_by(owner);
        Ok(Self {
            shell,
            url,
            store,
            clients,
            options,
        })
    }

    /// AWS clients for a region; without one, for the region of the environment.
    pub fn cloud_clients(&self, region: Option<&str>) -> CloudClients {
        match region {
            Some(region) => CloudClients::new(&self.clients.in_region(region)),
            None => CloudClients::new(&self.clients),
        }
    }

    /// The cluster that the command works on: the named one, or the only one in the store.
    pub async fn cluster_name(&self, positional: Option<&str>) -> Result<String, CommandError> {
        if let Some(name) = named_cluster(self.options, positional)? {
            return Ok(name);
        }
        let mut all = state::cluster_names(&self.store).await?;
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => Err(CommandError::usage_error(
                format!("there is no cluster in {}", self.url),
                "create one with `kctl create cluster NAME --zones ZONES`, or choose another store with --state",
            )),
            (Some(last), false) => {
                all.push(last);
                Err(CommandError::usage_error(
                    format!("which cluster? {} has {}", self.url, all.join(", ")),
                    format!(
                        "name it: as argument, with --name or with {}",
                        env::CLUSTER_NAME
                    ),
                ))
            }
        }
    }

    /// The cluster that the command line names. For deletions: never the only cluster or one from the environment.
    pub async fn explicit_cluster_name(
        &self,
        positional: Option<&str>,
    ) -> Result<String, CommandError> {
        if positional.or(self.options.name.as_deref()).is_some()
            && let Some(name) = named_cluster(self.options, positional)?
        {
            return Ok(name);
        }
        let all = state::cluster_names(&self.store).await?;
        Err(CommandError::usage_error(
            "which cluster? Name the cluster to delete as argument or with --name",
            match all.as_slice() {
                [] => format!("there is none in {}", self.url),
                all => format!("{} has {}", self.url, all.join(", ")),
            },
        ))
    }

    /// The cluster that is named on the command line or in the environment.
    pub fn named_cluster(&self, positional: Option<&str>) -> Result<Option<String>, CommandError> {
        named_cluster(self.options, positional)
    }

    /// Fails if the store has no cluster of that name, and suggests a similar name.
    pub async fn check_cluster_exists(&self, name: &str) -> Result<(), CommandError> {
        let all = state::cluster_names(&self.store).await?;
        if all.iter().any(|cluster| cluster == name) {
            return Ok(());
        }
        Err(state::no_cluster_error(name, &self.url, &all))
    }
}

/// The cluster named on the command line or in the environment.
pub fn named_cluster(
    options: &GlobalOptions,
    positional: Option<&str>,
) -> Result<Option<String>, CommandError> {
    match (positional, options.name.as_deref()) {
        (Some(positional), Some(name)) if positional != name => Err(CommandError::usage_error(
            format!("two clusters are named: {positional}, and {name} with --name"),
            "name one",
        )),
        (Some(name), _) | (None, Some(name)) => Ok(Some(name.to_owned())),
        (None, None) => Ok(env::first_variable(&[
            env::CLUSTER_NAME,
            env::KOPS_CLUSTER_NAME,
        ])),
    }
}

/// URL of the state store. By default a folder among the user's data, with a warning.
pub fn store_url(options: &GlobalOptions, shell: &Shell) -> Result<String, CommandError> {
    let given = options.state.clone().filter(|url| !url.is_empty());
    if let Some(url) =
        given.or_else(|| env::first_variable(&[env::STATE_STORE, env::KOPS_STATE_STORE]))
    {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let dir = env::default_store().ok_or_else(|| {
        CommandError::usage_error(
            "it is not clear where clusters are kept",
            "give --state or KCTL_STATE_STORE, for example s3://my-bucket",
        )
    })?;
    let url = format!("file://{}", dir.display());
    shell.warning(&format!(
        "no state store is set; using {url}. Instances in AWS cannot read it: set {}=s3://BUCKET",
        env::STATE_STORE
    ));
    Ok(url)
}
