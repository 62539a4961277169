//! A drill: a stored snapshot is downloaded, a scratch etcd reads it, and what was found stands in the state of the backups, which
//! `kctl validate` shows.

use super::source::SnapshotSource;
use super::stored_state::BackupStateObject;
use super::take::SnapshotTaker;
use node::backup::{BackupDrill, BackupState};
use node::waits::bounded_text;
use std::time::Instant;
use time::format_description::well_known::Rfc3339;

/// Limit of what is stored of a drill or of a problem, characters.
pub(super) const TEXT_LIMIT: usize = 500;

impl<S: SnapshotSource> SnapshotTaker<S> {
    /// Drills with the snapshot of this name. Returns what it holds; the error says why it cannot be restored.
    pub async fn drill(&self, name: &str) -> anyhow::Result<String> {
        let begun = Instant::now();
        let verified = self.verify_stored(name).await;
        let found = match &verified {
            Ok(found) => found.clone(),
            Err(error) => format!("{error:#}"),
        };
        let drill = BackupDrill {
            name: name.to_owned(),
            instance: self.instance.clone(),
            at: (self.clock)().format(&Rfc3339).unwrap_or_default(),
            seconds: begun.elapsed().as_secs(),
            found: bounded_text(&found, TEXT_LIMIT),
            failed: verified.is_err(),
        };
        let with_drill = |state: &BackupState| {
            let drill = Some(drill.clone());
            Some(BackupState {
                drill,
                ..state.clone()
            })
        };
        let object = BackupStateObject::new(&self.store, &self.etcd);
        object.change(with_drill).await?;
        verified
    }
}
