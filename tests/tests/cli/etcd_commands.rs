//! `kctl etcd members` and `disarm`, with a store in a folder and a fake protokube that answers in it. Neither AWS nor a Kubernetes API is
//! there. protokube's side is tested in `protokube/tests/roles/commands.rs`.

use crate::kctl::{Kctl, KctlOutput};
use crate::scenario::NAME;
use etcd_rules::{CommandState, EtcdCommand, Verb};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Three members of main, of which a leads, as they report now.
struct Members {
    kctl: Kctl,
}

impl Members {
    fn new() -> Self {
        let mut kctl = Kctl::new();
        let store = format!("file://{}", kctl.home_path("store").display());
        kctl.set_variable("KCTL_STATE_STORE", &store);
        let members = Self { kctl };
        for (id, revision) in [("a", 9), ("b", 7), ("c", 8)] {
            members.report(id, revision, Duration::ZERO);
        }
        members
    }

    fn folder(&self) -> PathBuf {
        self.kctl.home_path(&format!("store/{NAME}/etcd"))
    }

    /// Writes the report of a member as of some time ago.
    fn report(&self, id: &str, revision: u64, ago: Duration) {
        self.report_with(id, revision, ago, &json!({}));
    }

    /// Makes all members report an alarm that was raised for one of them.
    fn report_alarm(&self, alarm: &str, raised: &str) {
        let other =
            json!({"alarms": [alarm], "raisedAlarms": [{"alarm": alarm, "member": raised}]});
        for id in ["a", "b", "c"] {
            self.report_with(id, 7, Duration::ZERO, &other);
        }
    }

    /// Writes a report with other values of what etcd says.
    fn report_with(&self, id: &str, revision: u64, ago: Duration, other: &Value) {
        let listed = |id: &str| json!({"id": id, "name": format!("etcd-{id}")});
        // Instances' clocks are behind by more than what counts as silent.
        let written = OffsetDateTime::now_utc() - ago - Duration::from_mins(4);
        let written = written.format(&Rfc3339);
        let mut running = json!({"name": format!("etcd-{id}"), "id": id, "clusterId": "c1", "leader": "a", "term": 2,
            "revision": revision, "members": [listed("a"), listed("b"), listed("c")]});
        for (key, value) in other.as_object().expect("an object") {
            running[key] = value.clone();
        }
        let status = json!({"format": 1, "etcd": "main", "instance": format!("i-{id}"), "volume": format!("vol-{id}"),
            "written": written.expect("a time"), "running": running});
        let folder = self.folder().join("main");
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(format!("i-{id}.status.json"));
        fs::write(&path, status.to_string()).expect("a file");
        // The clock of the store decides how old it is.
        let file = fs::File::options().write(true).open(path);
        let stored = SystemTime::now() - ago;
        file.expect("a file").set_modified(stored).expect("a time");
    }

    fn run(&self, words: &[&str]) -> KctlOutput {
        let (command, options) = words.split_first().expect("a command");
        self.kctl.run(&[&["etcd", command, NAME], options].concat())
    }

    /// Runs a command while protokube on every instance answers as this says. Also returns what was asked, in order.
    fn run_answered(
        &self,
        words: &[&str],
        answer: impl Fn(&EtcdCommand) -> CommandState + Sync,
    ) -> (KctlOutput, Vec<EtcdCommand>) {
        let over = AtomicBool::new(false);
        let folder = self.folder().join("commands");
        thread::scope(|scope| {
            let fake = scope.spawn(|| answer_commands(&folder, &over, &answer));
            let ended = self.run(words);
            over.store(true, Ordering::Relaxed);
            (ended, fake.join().expect("the commands"))
        })
    }

    fn open_commands(&self) -> usize {
        fs::read_dir(self.folder().join("commands")).map_or(0, Iterator::count)
    }
}

/// A fake protokube: answers each command that waits.
fn answer_commands(
    folder: &Path,
    over: &AtomicBool,
    answer: impl Fn(&EtcdCommand) -> CommandState,
) -> Vec<EtcdCommand> {
    let mut asked = Vec::new();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let Ok(bytes) = fs::read(&path) else { continue };
            let hidden = path.to_string_lossy().contains("/.kctl-");
            let Some(mut command) = EtcdCommand::parse("command", &bytes)
                .ok()
                .filter(|command| !hidden && command.state == CommandState::Waiting)
            else {
                continue;
            };
            asked.push(command.clone());
            command.state = answer(&command);
            let aside = folder.join(".kctl-answer");
            fs::write(&aside, command.to_json()).expect("an answer");
            fs::rename(aside, path).expect("an answer");
        }
    }
    asked
}

fn done() -> CommandState {
    CommandState::Done {
        at: String::new(),
        message: "disarmed the alarm CORRUPT".to_owned(),
    }
}

fn failed(reason: &str) -> CommandState {
    CommandState::Failed {
        at: String::new(),
        reason: reason.to_owned(),
    }
}

fn instances(asked: &[EtcdCommand]) -> Vec<&str> {
    asked.iter().map(|one| one.instance.as_str()).collect()
}

#[test]
fn members_are_listed_as_the_best_informed_one_lists_them() {
    let members = Members::new();
    let listed = members.run(&["members", "-o", "json"]).expect_success();
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(
        listed["members"][1],
        json!({"etcd": "main", "name": "etcd-b", "id": "b", "voter": true, "started": true,
            "instance": "i-b", "volume": "vol-b"})
    );
    let table = members.run(&["members"]).expect_success();
    assert_eq!(table.lines().count(), 4, "{table}");
}

#[test]
fn corrupt_is_disarmed_by_the_leaders_instance() {
    let members = Members::new();
    members.report_alarm("CORRUPT", "b");
    let words = ["disarm", "--etcd", "main", "-o", "json"];
    let (ended, asked) = members.run_answered(&words, |_| done());
    for told in ["raised for etcd-b", "main: disarmed the alarm CORRUPT"] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
    let document: Value = serde_json::from_str(&ended.expect_success()).expect("JSON");
    assert_eq!(
        (&document["disarmed"], &document["alarm"]),
        (&json!(true), &json!("CORRUPT"))
    );
    let alarm = "CORRUPT".to_owned();
    assert_eq!(asked[0].verb, Verb::Disarm { alarm });
    assert!(asked[0].asked_by.contains('@'));
    assert_eq!(instances(&asked), ["i-a"]);
}

#[test]
fn data_that_differ_keep_their_alarm() {
    let members = Members::new();
    members.report_alarm("CORRUPT", "b");
    let (ended, asked) = members.run_answered(&["disarm"], |_| failed("they differ"));
    assert_eq!((ended.code, asked.len()), (1, 1), "{}", ended.all_output());
    for told in [
        "raised for etcd-b",
        "protokube on i-a: they differ",
        "docs/operations/etcd.md#a-corrupt-member",
    ] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
}

#[test]
fn without_corrupt_nothing_is_disarmed_and_nospace_is_left_to_protokube() {
    let members = Members::new();
    let (ended, asked) = members.run_answered(&["disarm"], |_| done());
    assert_eq!((ended.code, asked.len()), (0, 0), "{}", ended.all_output());
    let said = "main: no alarm CORRUPT is active";
    assert!(ended.err.contains(said), "{}", ended.err);
    assert!(!ended.err.contains("NOSPACE"), "{}", ended.err);
    members.report_alarm("NOSPACE", "b");
    // Writes are refused: a script must not go on.
    let (ended, asked) = members.run_answered(&["disarm", "-o", "json"], |_| done());
    assert_eq!((ended.code, asked.len()), (4, 0), "{}", ended.all_output());
    for told in [
        "the alarm NOSPACE is active; protokube ends it by itself",
        "docs/operations/full-disk.md",
    ] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
}

#[test]
fn a_command_that_nobody_begins_is_withdrawn() {
    let members = Members::new();
    members.report_alarm("CORRUPT", "b");
    let ended = members.run(&["disarm", "--timeout", "1s"]);
    assert_eq!(ended.code, 1, "{}", ended.all_output());
    assert!(
        ended
            .err
            .contains("did not begin within 1s: the command was withdrawn"),
        "{}",
        ended.err
    );
    assert_eq!(members.open_commands(), 0);
}

#[test]
fn without_a_fresh_report_nothing_is_asked() {
    let members = Members::new();
    for id in ["a", "b", "c"] {
        members.report(id, 7, Duration::from_hours(2));
    }
    let ended = members.run(&["disarm"]);
    assert_eq!(ended.code, 4, "{}", ended.all_output());
    let why = "no instance has reported its member of main for 2h";
    assert!(ended.err.contains(why), "{}", ended.err);
    let listed = members.run(&["members"]);
    assert!(listed.err.contains("newest report was written 2h"));
    assert_eq!((listed.code, members.open_commands()), (0, 0));
}

#[test]
fn an_interrupt_withdraws_a_command_that_nobody_has_begun() {
    let members = Members::new();
    members.report_alarm("CORRUPT", "b");
    let kctl = members
        .kctl
        .start_command(&["etcd", "disarm", NAME], Stdio::null());
    while members.open_commands() == 0 {
        thread::sleep(Duration::from_millis(20));
    }
    let id = kctl.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill").success());
    let ended = members.kctl.wait_for_end(kctl);
    assert_eq!(ended.code, 130, "{}", ended.all_output());
    let said = "the command was withdrawn: nothing was changed";
    assert!(ended.err.contains(said), "{}", ended.err);
    assert_eq!(members.open_commands(), 0);
}
