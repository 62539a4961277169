//! The keys of the tags that kctl has ever set, remembered in the store: only those are compared and removed.

use crate::commands::assemble::Assembled;
use crate::commands::look::Looked;
use crate::commands::running::completed;
use crate::commands::session::Session;
use crate::error::{CommandError, Kind};
use crate::state::store_error;
use cloud::OwnTags;
use spec::completed::Completed;

/// What is known of kctl's tags.
#[derive(Debug)]
pub struct Known {
    /// All that are set now or were set before.
    pub own: OwnTags,
    /// Those that the store remembers.
    remembered: Option<OwnTags>,
}

impl Known {
    /// What has to be written before any tag is: otherwise a tag of an interrupted run could not be told from others'.
    pub fn to_remember(&self, looked: &Looked) -> Option<(String, String)> {
        let news = self.remembered.as_ref() != Some(&self.own);
        news.then(|| (looked.state.keys.below(OwnTags::KEY), self.own.to_json()))
    }
}

/// What the store remembers, with what is wanted now. A cluster that kOps or an earlier kctl made has nothing there: its
/// last completed spec names the labels that were set.
pub async fn known(
    looked: &Looked,
    assembled: &Assembled,
    session: &Session<'_>,
) -> Result<Known, CommandError> {
    let mut wanted = OwnTags::default();
    wanted.add(&assembled.desired);
    let remembered = remembered(&wanted, looked, session).await?;
    let mut own = remembered.clone().unwrap_or_default();
    own.add(&assembled.desired);
    if remembered.is_none()
        && let Some(last) = completed(&looked.state, session).await?
    {
        own.add_everywhere(Completed::read(&last).cloud_labels.iter());
    }
    Ok(Known { own, remembered })
}

/// What the store remembers. Where that is what is wanted, the listing tells it.
async fn remembered(
    wanted: &OwnTags,
    looked: &Looked,
    session: &Session<'_>,
) -> Result<Option<OwnTags>, CommandError> {
    let key = looked.state.keys.below(OwnTags::KEY);
    let Some(entry) = looked.state.entry(&key) else {
        return Ok(None);
    };
    if session
        .store
        .surely_holds(entry, wanted.to_json().as_bytes())
    {
        return Ok(Some(wanted.clone()));
    }
    let object = session.store.get(&key).await.map_err(store_error)?;
    let read = object
        .map(|object| OwnTags::read(&object.bytes))
        .transpose();
    read.map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("{key} in the store cannot be used"));
        let hint = "use the kctl that wrote it, or restore it from the bucket's versions; without it kctl forgets \
                    which tags of former labels are its own, and leaves them";
        CommandError::new(Kind::Precondition, error, hint)
    })
}
