//! Every command of README.md and of getting started, in order, as written, against the AWS simulator. What a page says of a
//! command behind `#` is what is done with it: see [`script_step`].

use crate::checkout_folder;
use crate::page::{TypedCommand, page_commands};
use crate::simulator::Simulator;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Said of a program that goes on until it is interrupted.
const STAYS: &str = "stop it with Ctrl-C";
/// Said of what prints lines with `export` for the reader.
const PRINTS: &str = "prints what to set";
/// Said of what waits for instances to boot, which they do not in the simulator.
const BOOTING: &str = "instances that boot";
/// Said of what finds nothing to do, in the words that it has to say.
const NOTHING: &str = "No changes.";

fn commands_of(page: &str) -> Vec<TypedCommand> {
    let found =
        page_commands(&std::fs::read_to_string(checkout_folder().join(page)).expect("a page"));
    assert!(found.len() > 5, "{found:?}");
    found
}

/// A reader at a terminal: a home with an SSH key, an editor, an empty folder, the checkout's `make`, and AWS' own command line.
struct Reader {
    home: TempDir,
    simulator: Option<Simulator>,
}

impl Reader {
    fn new(simulator: Option<Simulator>) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMh5bF6mXZ0n1OJJcRRgYdcFZdG7pyEgk2Wv9l2FkrXn reader\n";
        std::fs::create_dir_all(home.path().join(".ssh")).expect("a folder");
        std::fs::create_dir_all(home.path().join("here")).expect("a folder");
        std::fs::write(home.path().join(".ssh/id_ed25519.pub"), key).expect("a file");
        Self { home, simulator }
    }

    /// What `program` runs in: nothing of AWS' and of kctl's but the simulator; the checkout builds where it always does.
    fn command_in_environment(&self, program: &str) -> Command {
        let venv = Command::new(checkout_folder().join("tests/simulator/venv.sh")).output();
        let venv = String::from_utf8(venv.expect("Python").stdout).expect("a path");
        let entry = checkout_folder().join("tests/tests/entry");
        let path = [entry, PathBuf::from(venv.trim()).join("bin"), kctl()];
        let path = path.map(|folder| folder.display().to_string()).join(":");
        let set = |name: &str| std::env::var(name).ok();
        let below = |folder: &str| format!("{}/{folder}", set("HOME").expect("a home"));
        let mut command = Command::new(program);
        for (name, _) in std::env::vars() {
            let users = [
                "AWS_",
                "KCTL_",
                "KUBECONFIG",
                "MAKE",
                "CARGO_MANIFEST",
                "CARGO_PKG",
                "RUSTC_BOOTSTRAP",
            ];
            if name == "CARGO" || users.iter().any(|start| name.starts_with(start)) {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.home.path().join("here"))
            .env(
                "CACHE",
                set("KCTL_CACHE").unwrap_or_else(|| below(".cache/kctl")),
            )
            .env(
                "CARGO_HOME",
                set("CARGO_HOME").unwrap_or_else(|| below(".cargo")),
            )
            .env(
                "RUSTUP_HOME",
                set("RUSTUP_HOME").unwrap_or_else(|| below(".rustup")),
            )
            .env(
                "PATH",
                format!("{path}:{}", set("PATH").unwrap_or_default()),
            )
            .env("HOME", self.home.path())
            .env("CHECKOUT", checkout_folder())
            .env("EDITOR", "true")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("PORT", "0")
            .stdin(Stdio::null());
        if let Some(simulator) = &self.simulator {
            command
                .env("AWS_ENDPOINT_URL", &simulator.endpoint)
                .env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
                .env("AWS_SECRET_ACCESS_KEY", "secret");
        }
        command
    }

    /// Types all of it; fails with what was on the screen if a command fails.
    fn run_commands(&self, typed: &[TypedCommand]) {
        let mut script = String::from(
            "set -eu\nmake() { command make --no-print-directory -C \"$CHECKOUT\" \"$@\"; }\n",
        );
        for (number, one) in typed.iter().enumerate() {
            script += &format!("echo '@@@ {number}'\n{}\n", script_step(one));
        }
        let ran = self
            .command_in_environment("bash")
            .args(["-c", &format!("exec 2>&1\n{script}")])
            .output();
        let ran = ran.expect("bash");
        let screen = String::from_utf8_lossy(&ran.stdout).into_owned();
        let answers: Vec<&str> = screen.split("@@@ ").skip(1).collect();
        let last = typed[answers.len().max(1) - 1].command.as_str();
        assert!(
            ran.status.success(),
            "{last} ended with {}:\n{screen}",
            ran.status
        );
        for (one, answer) in typed.iter().zip(&answers) {
            let nothing = one.comment.contains(NOTHING);
            assert!(
                !nothing || answer.contains(NOTHING),
                "{}: {answer}",
                one.command
            );
        }
    }
}

/// A command as a script has it.
fn script_step(typed: &TypedCommand) -> String {
    let TypedCommand { command, comment } = typed;
    if command == "make test" {
        // This is part of it.
        return "make --dry-run test >/dev/null".to_owned();
    }
    if comment.contains(PRINTS) {
        return format!("set -- \"$({command})\"; eval \"$(echo \"$1\" | grep '^export ')\"");
    }
    if comment.contains(BOOTING) {
        // Without waiting: it finds that they are not there.
        let look = command.split(" --wait ").next().unwrap_or_default();
        return format!("{look} || [ $? = 3 ]");
    }
    command.clone()
}

/// Where kctl is built.
fn kctl() -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    let built = own.parent().and_then(|deps| deps.parent());
    let built = built.expect("target/debug").to_owned();
    assert!(built.join("kctl").is_file(), "cargo build --bin kctl");
    built
}

/// A program that stays, and all that it started.
struct RunningProgram(Child);

impl RunningProgram {
    /// Ctrl-C: to all of them. Where this test was started in the background of a script, SIGINT is ignored by whatever it
    /// starts (POSIX, 2.11): there SIGTERM has to do.
    fn interrupt_group(&mut self) {
        let all = format!("-{}", self.0.id());
        for signal in ["-INT", "-TERM"] {
            // They may be gone already.
            let _ = Command::new("kill").args([signal, "--", &all]).status();
            for _ in 0..100 {
                if !matches!(self.0.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        self.0.wait().expect("its end");
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.interrupt_group();
        }
    }
}

/// A program that stays; what it said for the reader to set.
fn start_program(reader: &Reader, typed: &TypedCommand) -> (RunningProgram, Vec<TypedCommand>) {
    let words: Vec<&str> = typed.command.split(' ').collect();
    let mut command = reader.command_in_environment(words[0]);
    command
        .args(&words[1..])
        .current_dir(checkout_folder())
        .process_group(0);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let mut set = Vec::new();
    for line in out.lines() {
        let line = line.expect("text");
        if line.starts_with("export ") {
            set.push(TypedCommand {
                command: line,
                comment: String::new(),
            });
        } else if !set.is_empty() {
            break;
        }
    }
    assert!(!set.is_empty(), "{} said nothing to set", typed.command);
    (RunningProgram(child), set)
}

#[test]
fn the_readme_works_as_written() {
    let simulator = Simulator::start_simulator();
    let bucket = "boto('s3').create_bucket(Bucket='my-state', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'})";
    simulator.run_python("eu-west-1", bucket);
    Reader::new(Some(simulator)).run_commands(&commands_of("README.md"));
}

#[test]
fn getting_started_works_as_written() {
    let all = commands_of("docs/getting-started.md");
    let stays = all
        .iter()
        .position(|one| one.comment.contains(STAYS))
        .expect("make simulator");
    let (alone, rest) = all.split_at(stays + 1);
    let (begun, [simulator]) = alone.split_at(stays) else {
        panic!("{alone:?}")
    };
    assert!(begun.is_empty(), "{begun:?}");
    // The page goes on with AWS where the state store gets a bucket.
    let aws = rest
        .iter()
        .position(|one| one.comment.contains(PRINTS))
        .expect("on AWS");

    let reader = Reader::new(None);
    let (mut running, mut second) = start_program(&reader, simulator);
    let endpoint = second
        .iter()
        .find_map(|one| one.command.split_once("AWS_ENDPOINT_URL=http://"));
    let endpoint = endpoint
        .expect("an endpoint")
        .1
        .split(' ')
        .next()
        .expect("an address")
        .to_owned();
    second.extend_from_slice(&rest[..aws]);
    reader.run_commands(&second);
    running.interrupt_group();
    // make is gone before what it ran.
    for _ in 0..600 {
        if TcpStream::connect(&endpoint).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(TcpStream::connect(&endpoint).is_err(), "it still answers");

    Reader::new(Some(Simulator::start_simulator())).run_commands(&rest[aws..]);
}
