//! Where NodeConfig comes from: control planes read it in the state store, workers are handed it by protokube.

use anyhow::{Context, bail};
use aws::Clients;
use aws::store::Store;
use model::node::{BootConfig, node_config_key};

/// The text of the NodeConfig that BootConfig names. Not yet verified.
pub async fn node_config(boot: &BootConfig) -> anyhow::Result<String> {
    let Some(base) = &boot.config_base else {
        bail!(
            "{} hands out NodeConfig to workers, and this release of nodeup cannot ask it yet",
            boot.bootstrap_servers.join(", ")
        );
    };
    let region = aws::Imds::new().region().await?;
    let clients = Clients::load(region.as_deref(), None).await;
    let store = Store::open(base, &clients)?;
    let key = node_config_key(boot.role, &boot.group, &boot.node_config);
    let object = store
        .get(&key)
        .await?
        .with_context(|| format!("{base}/{key} does not exist"))?;
    String::from_utf8(object.bytes).with_context(|| format!("{base}/{key} is not text"))
}
