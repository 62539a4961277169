//! The processes below one.

use anyhow::Result;
use rustix::process::{WaitOptions, wait};
use std::collections::BTreeMap;
use std::fs;

/// Pids of all descendants that run, whatever thread began them.
pub fn descendants_of(root: u32) -> Result<Vec<u32>> {
    let mut children = BTreeMap::<u32, Vec<u32>>::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // Gone meanwhile.
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next())
        };
        if let Some(parent) = field("PPid:").and_then(|parent| parent.parse().ok())
            && field("State:") != Some("Z")
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(one) = open.pop() {
        let below = children.remove(&one).unwrap_or_default();
        open.extend(&below);
        found.extend(below);
    }
    Ok(found)
}

/// Takes note of the orphans that have ended.
pub fn reap_orphans() -> Result<()> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
