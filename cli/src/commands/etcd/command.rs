//! Asks protokube on an instance to do something with its etcd member, and waits for the answer: an object in the state store that
//! protokube claims and answers. A command that nobody has begun in time is withdrawn.

use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::interrupt::Interrupts;
use crate::state::{StoreKeys, store_error, user_at_host};
use aws_client::store::{Expect, Object, StoreError};
use etcd_rules::{CommandState, EtcdCommand, ReportedMember, Verb, command_id, command_key};
use node::duration::duration_text;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::time::Instant;

/// Time between two looks for the answer.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How long protokube may take for a command that it has begun: longer than its own timeouts.
fn work_time(verb: &Verb) -> Duration {
    match verb {
        // A database of 8 GiB is read, downloaded or uploaded, and a scratch etcd reads it; another one may be under way before.
        Verb::Snapshot { .. } | Verb::VerifySnapshot { .. } => Duration::from_hours(2),
        _ => Duration::from_mins(7),
    }
}

/// Commands to the members of one cluster.
#[derive(Debug)]
pub struct CommandChannel<'a> {
    pub session: &'a Session<'a>,
    /// The cluster.
    pub name: &'a str,
    /// How long protokube may take to begin.
    pub timeout: Duration,
}

impl CommandChannel<'_> {
    /// Asks protokube on the instance of this member, and waits until it is done. Returns what protokube says.
    pub async fn execute(
        &self,
        member: &ReportedMember,
        verb: Verb,
    ) -> Result<String, CommandError> {
        let (etcd, instance) = (&member.status.etcd, &member.status.instance);
        let mut random = [0; 4];
        getrandom::fill(&mut random).or_failed(
            "could not get random numbers from the system",
            "report this: it is a defect of kctl",
        )?;
        let now = OffsetDateTime::now_utc();
        let who = user_at_host();
        let time = work_time(&verb);
        let command = EtcdCommand::new(etcd, instance, verb, &who, now, self.timeout);
        let key = StoreKeys::new(self.name).key_below(&command_key(&command_id(now, random)));
        let text = command.to_json().into_bytes();
        let asked = async {
            let put = self.session.store.put(&key, text, Expect::Absent).await;
            put.map_err(store_error)?;
            self.wait_for_answer(&key, instance, time).await
        };
        let interrupts = Interrupts::default();
        tokio::select! {
            biased;
            // First: signals are handled before the command is written.
            () = interrupts.wait_to_leave(|| ()) => Err(self.leave_command(&key).await),
            answer = asked => answer,
        }
    }

    async fn wait_for_answer(
        &self,
        key: &str,
        instance: &str,
        time: Duration,
    ) -> Result<String, CommandError> {
        let asked = Instant::now();
        let mut begun = None;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let read = self.read_command(key).await;
            let (command, object) = read.map_err(|error| {
                error.with_hint(format!(
                    "protokube may still execute the command: see `kctl etcd status {}`",
                    self.name
                ))
            })?;
            match command.state {
                CommandState::Done { message, .. } => return Ok(message),
                CommandState::Failed { reason, .. } => {
                    return Err(CommandError::from_message(
                        ErrorKind::Failed,
                        format!("protokube on {instance}: {reason}"),
                        format!("see the members with `kctl etcd status {}`", self.name),
                    ));
                }
                CommandState::Claimed { .. } => {
                    let begun = begun.get_or_insert_with(Instant::now);
                    if begun.elapsed() > time {
                        return Err(self.unanswered_error(key, instance, time));
                    }
                }
                CommandState::Waiting if asked.elapsed() >= self.timeout => {
                    if self.withdraw(key, object).await? {
                        return Err(self.withdrawn_error(instance));
                    }
                }
                CommandState::Waiting => {}
            }
        }
    }

    async fn read_command(&self, key: &str) -> Result<(EtcdCommand, Object), CommandError> {
        let object = self.session.store.get(key).await.map_err(store_error)?;
        let object = object.ok_or_else(|| {
            CommandError::from_message(
                ErrorKind::Failed,
                format!("{key} was deleted by somebody else"),
                "see with `kctl etcd status` whether it was executed, and ask again",
            )
        })?;
        let command = EtcdCommand::parse(key, &object.bytes).or_failed(
            "the answer of protokube cannot be read",
            "use the kctl of the cluster's release",
        )?;
        Ok((command, object))
    }

    /// Deletes a command that nobody has begun. False if protokube has begun it meanwhile.
    async fn withdraw(&self, key: &str, read: Object) -> Result<bool, CommandError> {
        let expect = Expect::Version(read.version);
        match self.session.store.delete(key, expect).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(store_error(error)),
        }
    }

    /// Withdraws a command after an interrupt, if it can be.
    async fn leave_command(&self, key: &str) -> CommandError {
        let withdrawn = match self.read_command(key).await {
            Ok((command, object)) if command.state == CommandState::Waiting => {
                self.withdraw(key, object).await
            }
            other => other.map(|_| false),
        };
        let hint = match withdrawn {
            Ok(true) => "the command was withdrawn: nothing was changed".to_owned(),
            Ok(false) => format!(
                "protokube has begun the command and goes on: see `kctl etcd status {}`",
                self.name
            ),
            Err(_) => format!(
                "the command could not be withdrawn: protokube begins it within {} at the latest, or never",
                words(self.timeout)
            ),
        };
        CommandError::from_message(ErrorKind::Interrupted, "interrupted", hint)
    }

    fn withdrawn_error(&self, instance: &str) -> CommandError {
        let name = self.name;
        CommandError::from_message(
            ErrorKind::Failed,
            format!(
                "protokube on {instance} did not begin within {}: the command was withdrawn, and nothing was changed",
                words(self.timeout)
            ),
            format!("see whether it reports, and what it waits for: `kctl etcd status {name}`"),
        )
        .with_hint(format!(
            "protokube of an older release reads no commands: see `kctl rolling-update {name}`"
        ))
    }

    fn unanswered_error(&self, key: &str, instance: &str, time: Duration) -> CommandError {
        CommandError::from_message(
            ErrorKind::Failed,
            format!(
                "protokube on {instance} has begun, but has not answered for {}",
                words(time)
            ),
            format!(
                "see the member with `kctl etcd status {}`; its answer will be in {key}",
                self.name
            ),
        )
    }
}

/// A time for a sentence: `2m`.
pub fn words(time: Duration) -> String {
    duration_text(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

/// The members of an etcd cluster that report. An error says why there is none.
pub fn reporting_members<'a>(
    members: &'a [ReportedMember],
    etcd: &str,
    name: &str,
) -> Result<Vec<&'a ReportedMember>, CommandError> {
    let all: Vec<&ReportedMember> = members
        .iter()
        .filter(|one| one.status.etcd == etcd)
        .collect();
    let fresh = all.iter().filter(|one| one.is_stored_lately());
    let fresh: Vec<&ReportedMember> = fresh.copied().collect();
    if !fresh.is_empty() {
        return Ok(fresh);
    }
    let youngest = all.iter().filter_map(|one| one.age_seconds).min();
    let sentence = match youngest {
        None => format!("no instance of {name} reports a member of an etcd cluster {etcd}"),
        Some(age) => format!(
            "no instance has reported its member of {etcd} for {}: protokube does not run there, or cannot write to the state store",
            duration_text(age)
        ),
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        sentence,
        format!("see how far the control planes are: `kctl get instances --name {name}`"),
    )
    .with_hint("on an instance: journalctl -u protokube"))
}
