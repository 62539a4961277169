//! A report of a lab: consoles, journals, network and logs in a folder, for whoever looks at what went wrong.

use crate::host::{self, HostState};
use crate::lab_paths::LabPaths;
use crate::network::commands::describe_network;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Files of the lab as they are.
const FILES: [&str; 8] = [
    "daemon.log",
    "simulator.log",
    "access.log",
    "up.json",
    "network.json",
    "ledger",
    "writes.attempts",
    "writes.seen",
];

/// What programs in a host say of it.
const PROGRAMS: [(&str, &[&str]); 3] = [
    (
        "journal",
        &["journalctl", "--no-pager", "--output=short-iso"],
    ),
    ("failed", &["systemctl", "--no-pager", "--failed"]),
    ("processes", &["ps", "axfww", "-o", "pid,stat,etime,args"]),
];

/// Writes all that can be had of a lab to a folder, made if it is not there; what cannot be had is said in its file.
pub fn write_report(place: &LabPaths, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let put = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
    };
    for name in FILES {
        if let Ok(content) = fs::read(place.run().join(name)) {
            put(name, &content)?;
        }
    }
    let network = text_or_error(describe_network(place).map_err(Into::into));
    put("network.txt", network.as_bytes())?;
    for one in host::list_hosts(place)? {
        let id = &one.spec.instance;
        put(&format!("{id}.console"), &host::read_console(place, id)?)?;
        // Else nothing runs there yet or any more, and its console says the rest.
        let on = one.current_state(place)? == HostState::Running;
        for (what, words) in PROGRAMS.into_iter().filter(|_| on) {
            let output = host::exec_output(place, id, words);
            let text = text_or_error(
                output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()),
            );
            put(&format!("{id}.{what}"), text.as_bytes())?;
        }
    }
    Ok(())
}

fn text_or_error(result: Result<String>) -> String {
    result.unwrap_or_else(|error| format!("could not be had: {error:#}\n"))
}
