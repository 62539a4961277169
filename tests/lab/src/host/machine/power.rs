//! The power button of a virtual machine, by which EC2 too stops and terminates: the machine's systemd shuts down.

use super::super::state::HostPaths;
use super::json_socket::JsonSocket;
use crate::lab_paths::LabPaths;
use anyhow::Result;
use serde_json::json;

/// Presses it. A machine whose kernel is not there yet does not notice.
pub(in super::super) fn press_button(place: &LabPaths, instance: &str) -> Result<()> {
    let socket = HostPaths::for_host(place, instance).monitor_socket();
    let mut monitor = JsonSocket::connect_monitor(&socket)?;
    monitor.ask("system_powerdown", &json!({})).map(drop)
}
