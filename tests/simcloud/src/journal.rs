//! The journal in the simulated state store: read-after-write, and written only over what was read, as S3 does it.

use super::cloud::SimCloud;
use super::rules::refusal_failure;
use engine::{Class, Failure, Id, Journal, Noted};

impl SimCloud {
    /// A write that was repeated finds what it wrote. One that comes too late finds another's, and changes nothing.
    async fn write_journal(&self, content: Noted) -> Result<(), Failure> {
        let (own, expected) = (Id::new("journal", "any"), self.journal.borrow().0);
        let id = own.clone();
        let written = self.send_request("journal", Some(&own), move |state, _| {
            let (version, now) = &mut state.journal;
            if *version == expected {
                *version += 1;
                *now = content;
            } else if *now != content {
                return Err(refusal_failure(
                    Class::Invalid,
                    "journal",
                    &id,
                    "was overtaken",
                ));
            }
            Ok(state.journal.clone())
        });
        let written = written.await?;
        self.journal.replace(written);
        Ok(())
    }
}

impl Journal for SimCloud {
    async fn open(&self) -> Result<Noted, Failure> {
        let read = self.send_request("journal", None, |state, _| Ok(state.journal.clone()));
        let (version, noted) = read.await?;
        self.journal.replace((version, noted.clone()));
        Ok(noted)
    }

    async fn record(&self, ids: &[Id]) -> Result<(), Failure> {
        let mut content = self.journal.borrow().1.clone();
        content.creating = ids.to_vec();
        self.write_journal(content).await
    }

    async fn close(&self, made: &[Id]) -> Result<(), Failure> {
        self.write_journal(Noted {
            creating: Vec::new(),
            made: made.to_vec(),
        })
        .await
    }
}
