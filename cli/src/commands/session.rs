//! What every command about stored clusters begins with: which store, which cluster, which AWS account.

use crate::args::Global;
use crate::env;
use crate::error::CommandError;
use crate::state::{self, store_error};
use crate::ui::Shell;
use aws_client::Clients;
use aws_client::store::{Owner, Store};
use aws_cloud::CloudClients;

/// The store and the clients of one command.
#[derive(Debug)]
pub struct Session<'a> {
    /// The terminal.
    pub shell: &'a Shell,
    /// Where clusters are kept.
    pub url: String,
    /// The store there.
    pub store: Store,
    /// AWS, in the region of the environment.
    pub clients: Clients,
    options: &'a Global,
}

impl<'a> Session<'a> {
    /// Opens the store; calls nothing yet.
    pub async fn open(options: &'a Global, shell: &'a Shell) -> Result<Self, CommandError> {
        let url = store_url(options, shell)?;
        let told = shell.clone();
        let clients = Clients::load(None, None).await;
        let clients = clients.telling(move |again| told.note(&again.to_string()));
        let owner = env::first(&[env::STATE_OWNER]).map_or(Owner::Caller, Owner::Account);
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

    /// Every client of AWS, in a cluster's region; without one, in that of the environment.
    pub fn cloud_clients(&self, region: Option<&str>) -> CloudClients {
        match region {
            Some(region) => CloudClients::new(&self.clients.in_region(region)),
            None => CloudClients::new(&self.clients),
        }
    }

    /// The cluster the command is about: named, or the store's only one.
    pub async fn cluster(&self, positional: Option<&str>) -> Result<String, CommandError> {
        if let Some(name) = named(self.options, positional)? {
            return Ok(name);
        }
        let mut all = state::clusters(&self.store).await?;
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => Err(CommandError::usage(
                format!("there is no cluster in {}", self.url),
                "create one with `kctl create cluster NAME --zones ZONES`, or choose another store with --state",
            )),
            (Some(last), false) => {
                all.push(last);
                Err(CommandError::usage(
                    format!("which cluster? {} has {}", self.url, all.join(", ")),
                    format!(
                        "name it: as argument, with --name or with {}",
                        env::CLUSTER_NAME
                    ),
                ))
            }
        }
    }

    /// The cluster that the command line names: one that is to be deleted is not guessed, and no variable that somebody set
    /// an hour ago counts.
    pub async fn spelled_out(&self, positional: Option<&str>) -> Result<String, CommandError> {
        if positional.or(self.options.name.as_deref()).is_some()
            && let Some(name) = named(self.options, positional)?
        {
            return Ok(name);
        }
        let all = state::clusters(&self.store).await?;
        Err(CommandError::usage(
            "which cluster? One that is to be deleted is named: as argument or with --name",
            match all.as_slice() {
                [] => format!("there is none in {}", self.url),
                all => format!("{} has {}", self.url, all.join(", ")),
            },
        ))
    }

    /// The cluster that is named on the command line or in the environment.
    pub fn named(&self, positional: Option<&str>) -> Result<Option<String>, CommandError> {
        named(self.options, positional)
    }

    /// Fails if the store has no cluster of that name; says which have a similar one.
    pub async fn existing(&self, name: &str) -> Result<(), CommandError> {
        let all = state::clusters(&self.store).await?;
        if all.iter().any(|cluster| cluster == name) {
            return Ok(());
        }
        Err(state::no_cluster(name, &self.url, &all))
    }
}

/// The cluster named on the command line or in the environment.
pub fn named(options: &Global, positional: Option<&str>) -> Result<Option<String>, CommandError> {
    match (positional, options.name.as_deref()) {
        (Some(positional), Some(name)) if positional != name => Err(CommandError::usage(
            format!("two clusters are named: {positional}, and {name} with --name"),
            "name one",
        )),
        (Some(name), _) | (None, Some(name)) => Ok(Some(name.to_owned())),
        (None, None) => Ok(env::first(&[env::CLUSTER_NAME, env::KOPS_CLUSTER_NAME])),
    }
}

/// Where clusters are kept. Without an answer: among the user's data, which is said.
pub fn store_url(options: &Global, shell: &Shell) -> Result<String, CommandError> {
    let given = options.state.clone().filter(|url| !url.is_empty());
    if let Some(url) = given.or_else(|| env::first(&[env::STATE_STORE, env::KOPS_STATE_STORE])) {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let dir = env::default_store().ok_or_else(|| {
        CommandError::usage(
            "it is not clear where clusters are kept",
            "give --state or KCTL_STATE_STORE, for example s3://my-bucket",
        )
    })?;
    let url = format!("file://{}", dir.display());
    shell.note(&format!("using {url}, for trying things: for a cluster that lasts give --state s3://BUCKET or set {}", env::STATE_STORE));
    Ok(url)
}
