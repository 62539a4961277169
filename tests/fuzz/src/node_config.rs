//! A machine's configuration as nodeup reads it, and what it makes of it.

use super::expand::said;
use super::same::same;
use engine::{Snapshot, plan};
use node::config::{InstanceFacts, etcd_pods, read_boot_config, read_node_config};
use node::digest::sha256_hex;
use node::host;

pub fn law(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(boot) = read_boot_config(&text) {
        let _ = boot.addresses();
    }
    let config = match read_node_config(&text, &sha256_hex(text.as_bytes())) {
        Ok(config) => config,
        Err(error) => return said(&error),
    };
    let written = config.to_yaml().expect("it has a YAML form");
    let again = read_node_config(&written, &sha256_hex(&written));
    same(
        &again.expect("it is read back"),
        &config,
        "NodeConfig read back",
    );
    let _ = etcd_pods(&config, "data");
    match host::desired_resources(&config, &InstanceFacts::placeholder()) {
        Ok(wanted) => drop(plan(&wanted, &Snapshot::default())),
        Err(error) => said(&error),
    }
}
