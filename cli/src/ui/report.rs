//! A page for eyes: what `kctl validate`, `get instances`, `etcd status`, `get operations` and `lock status` say of a cluster, and the boot
//! reports of its instances, as one HTML file. It judges nothing itself. `html` turns text into markup, each other file is a part of the page.

mod backups;
mod etcd;
mod html;
mod instances;
mod operations;
mod page;
mod problems;
mod rolling_update;
mod table;
mod timeline;

pub use page::{Page, render};

use super::etcd::RestorableRow;
use super::health::Warning;
use crate::state::{ListedOperation, LockKind, LockState, ObservedLock};
use etcd_rules::ReportedMember;
use etcd_rules::backup::BackupState;
use fleet::{Health, InstanceStatus};
use html::{Html, element, plain, text};
use node::report::BootReport;
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// What was read of a cluster at one moment.
#[derive(Debug)]
pub struct Report {
    pub cluster: String,
    /// When it was read.
    pub at: OffsetDateTime,
    pub health: Health,
    pub warnings: Vec<Warning>,
    /// What could not be read.
    pub gaps: Vec<String>,
    /// By group and id.
    pub instances: Vec<InstanceStatus>,
    /// By instance id.
    pub boots: BTreeMap<String, BootReport>,
    /// Members of etcd clusters.
    pub members: Vec<ReportedMember>,
    /// States of the backups, by etcd cluster.
    pub backups: BTreeMap<String, BackupState>,
    /// Up to when etcd clusters can be restored whose changes are stored.
    pub restorable: Vec<RestorableRow>,
    /// The newest first.
    pub operations: Vec<ListedOperation>,
    /// The locks that somebody holds, or has left.
    pub locks: Vec<SeenLock>,
}

/// A lock of the cluster.
#[derive(Debug)]
pub struct SeenLock {
    pub kind: LockKind,
    pub lock: ObservedLock,
}

impl SeenLock {
    fn is_alive(&self) -> bool {
        matches!(self.lock.state(), LockState::Alive(_))
    }
}

/// A section of the page. Its heading names it.
fn section(
    id: &'static str,
    heading: &'static str,
    content: impl IntoIterator<Item = Html>,
) -> Html {
    let name = format!("{id}-heading");
    let heading = element("h2", &[("id", name.as_str())], [text(heading)]);
    let attributes = [("id", id), ("aria-labelledby", name.as_str())];
    element(
        "section",
        &attributes,
        std::iter::once(heading).chain(content),
    )
}

/// A part that opens at its summary.
fn folded(id: &str, is_open: bool, summary: &str, content: impl IntoIterator<Item = Html>) -> Html {
    let mut attributes = vec![("id", id)];
    attributes.extend(is_open.then_some(("open", "")));
    let summary = plain("summary", [text(summary)]);
    element(
        "details",
        &attributes,
        std::iter::once(summary).chain(content),
    )
}

/// A paragraph.
fn paragraph(said: &str) -> Html {
    plain("p", [text(said)])
}

/// What to do.
fn next_step(said: &str) -> Html {
    let label = plain("b", [text("Next step:")]);
    element("p", &[("class", "next")], [label, text(" "), text(said)])
}

/// `1 instance`, `3 instances`.
fn count_text(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
