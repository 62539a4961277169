//! Instances as Kubernetes nodes.

use super::Lab;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// Taint of a node that the cloud controller manager has not initialized.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

impl Lab {
    /// Fails if an instance is not a Ready node that the cloud controller manager has initialized.
    pub fn is_ready(&self, id: &str) -> Result<()> {
        let node = self.get_objects(&["node", id])?;
        let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.context("conditions")?.iter();
        let ready = conditions.find(|one| one.get("type").is_some_and(|of| of == "Ready"));
        let ready = ready.context("nothing is said of Ready")?;
        ensure!(
            ready.get("status").is_some_and(|is| is == "True"),
            "{ready}"
        );
        let taints = node.pointer("/spec/taints").and_then(Value::as_array);
        let key = |one: &Value| one.get("key").is_some_and(|key| key == UNINITIALIZED);
        let tainted = taints.is_some_and(|all| all.iter().any(key));
        ensure!(!tainted, "{taints:?}");
        Ok(())
    }

    /// Waits until the node is ready.
    pub fn becomes_ready(&self, id: &str, limit: Duration) -> Result<()> {
        self.wait_until(&format!("{id} is a Ready node"), limit, |lab| {
            lab.is_ready(id)
        })
    }

    /// Waits until an instance is a Ready node in its current boot.
    pub fn ready_again(&self, id: &str, limit: Duration) -> Result<()> {
        self.wait_until("its node is Ready in this boot", limit, |lab| {
            lab.is_ready(id)?;
            let boot = lab.boot_id(id)?;
            let node = lab.get_objects(&["node", id])?;
            let known = node.pointer("/status/nodeInfo/bootID");
            ensure!(
                known.is_some_and(|known| *known == boot.as_str()),
                "the API knows boot {known:?}, it is {boot}"
            );
            Ok(())
        })
    }
}
