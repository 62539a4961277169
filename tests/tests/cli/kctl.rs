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
pub struct Ran {
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
        kctl.set("KCTL_STATE_STORE", &store);
        kctl
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file in the home, as an argument.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kctl"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it to its end, without a terminal.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    /// The same with something on standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self.start(arguments, Stdio::piped());
        let mut stdin = child.stdin.take().expect("standard input");
        // It may end without reading.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        self.end(child)
    }

    /// Starts it.
    pub fn start(&self, arguments: &[&str], stdin: Stdio) -> Child {
        let mut command = self.command(arguments);
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("kctl")
    }

    /// Waits for it.
    pub fn end(&self, child: Child) -> Ran {
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().expect("its end");
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .expect("text")
                .replace(&self.home(), "HOME")
        };
        Ran {
            code: status.code().unwrap_or(-1),
            out: text(stdout),
            err: text(stderr),
        }
    }

    fn home(&self) -> String {
        self.dir.path().display().to_string()
    }
}

impl Ran {
    /// Its results, if it went well.
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// All of it, for snapshots.
    pub fn all(&self) -> String {
        format!(
            "exit code {}\n--- stdout\n{}--- stderr\n{}",
            self.code, self.out, self.err
        )
    }
}

/// The folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs this"))
        .parent()
        .expect("the repository")
        .to_owned()
}
