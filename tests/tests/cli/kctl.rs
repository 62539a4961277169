//! The binary in an environment of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A home, and what kctl finds in its environment.
pub struct Kctl {
    pub dir: TempDir,
    environment: Vec<(String, String)>,
}

/// How a command ended.
pub struct KctlOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Kctl {
    /// An empty home, no credentials, no store.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().display().to_string();
        let environment = [
            ("HOME", home.as_str()),
            ("USER", "tester"),
            ("PATH", "/usr/bin:/bin"),
            ("COLUMNS", "100"),
        ];
        let environment = environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        Self { dir, environment }
    }

    /// The same with a store in the home.
    pub fn with_store() -> Self {
        let mut kctl = Self::new();
        let store = format!("file://{}", kctl.dir.path().join("store").display());
        kctl.set_variable("KCTL_STATE_STORE", &store);
        kctl
    }

    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    pub fn home_path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file in the home, as an argument. The text may name the home as outputs name it.
    pub fn write_file(&self, name: &str, text: &str) -> String {
        let path = self.home_path(name);
        let text = text.replace("file://HOME", &format!("file://{}", self.home_text()));
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    fn new_command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it to its end, without a terminal.
    pub fn run(&self, arguments: &[&str]) -> KctlOutput {
        self.run_with(arguments, "")
    }

    /// The same with something on standard input, in which the home may be named as outputs name it.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> KctlOutput {
        let input = input.replace("file://HOME", &format!("file://{}", self.home_text()));
        let mut child = self.start_command(arguments, Stdio::piped());
        let mut stdin = child.stdin.take().expect("standard input");
        // It may end without reading.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        self.wait_for_end(child)
    }

    /// Runs it to its end on a terminal of `script`, with something typed. Both outputs are in `out`.
    pub fn run_on_terminal(&self, arguments: &[&str], typed: &str) -> KctlOutput {
        let program = env!("CARGO_BIN_EXE_kctl");
        let words = [&[program], arguments].concat().join(" ");
        let mut command = Command::new("script");
        command
            .args(["--quiet", "--return", "--flush", "--command", &words])
            .arg("/dev/null")
            .current_dir(self.dir.path())
            .env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("script");
        let mut stdin = child.stdin.take().expect("standard input");
        stdin.write_all(typed.as_bytes()).expect("typed");
        let ran = self.wait_for_end(child);
        drop(stdin);
        ran
    }

    pub fn start_command(&self, arguments: &[&str], stdin: Stdio) -> Child {
        start(
            self.new_command(env!("CARGO_BIN_EXE_kctl"), arguments),
            stdin,
        )
    }

    /// The same with an option of `env` about signals; without one, kctl has them as these tests do, which may run under `nohup`.
    pub fn start_with_signals(&self, option: &str, arguments: &[&str]) -> Child {
        let words = [&[option, env!("CARGO_BIN_EXE_kctl")], arguments].concat();
        start(self.new_command("env", &words), Stdio::null())
    }

    pub fn wait_for_end(&self, child: Child) -> KctlOutput {
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().expect("its end");
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .expect("text")
                .replace(&self.home_text(), "HOME")
        };
        KctlOutput {
            code: status.code().unwrap_or(-1),
            out: text(stdout),
            err: text(stderr),
        }
    }

    fn home_text(&self) -> String {
        self.dir.path().display().to_string()
    }
}

fn start(mut command: Command, stdin: Stdio) -> Child {
    command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("kctl")
}

impl KctlOutput {
    /// Its results, if it went well.
    pub fn expect_success(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// All of it, for snapshots.
    pub fn all_output(&self) -> String {
        format!(
            "exit code {}\n--- stdout\n{}--- stderr\n{}",
            self.code, self.out, self.err
        )
    }
}

/// The folder of the repository.
pub fn repository_folder() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs this"))
        .parent()
        .expect("the repository")
        .to_owned()
}
