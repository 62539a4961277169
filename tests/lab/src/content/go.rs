//! The Go toolchain: which one it is, and the builds of one module.

use super::modules::Module;
use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MISSING: &str = "Go 1.26 or newer is needed to build what the lab serves, and Debian's is too old: `tests/lab/go` of the \
                       checkout prints the folder of one that it installs from PyPI, for PATH; https://go.dev/dl has it too";

/// Of an error of `go`, this many last lines are shown.
const LINES: usize = 40;

/// Between two lines about progress.
const PAUSE: Duration = Duration::from_secs(20);

/// A Go toolchain with caches of its own.
#[derive(Debug, Clone)]
pub struct Go {
    /// Version as Go prints it, for example `go1.26.8`.
    pub version: String,
    caches: PathBuf,
}

impl Go {
    /// The machine's toolchain, with its build and module caches below `caches`.
    pub fn find_toolchain(caches: PathBuf) -> Result<Self> {
        ensure!(
            std::env::consts::ARCH == "x86_64",
            "what the lab serves is built for amd64 machines only, and this one is {}",
            std::env::consts::ARCH
        );
        let mut go = Self {
            version: String::new(),
            caches,
        };
        let mut command = go.go_command();
        let output = command
            .args(["env", "GOVERSION"])
            .output()
            .context(MISSING)?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        ensure!(
            output.status.success() && new_enough(&said),
            "{MISSING}; this one is {said:?}"
        );
        go.version = said;
        Ok(go)
    }

    /// `go` with nothing of the user's settings that could change a binary.
    fn go_command(&self) -> Command {
        let mut command = Command::new("go");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            // Where modules come from is the user's to say; how they are compiled is not.
            let source = [
                "GOPROXY",
                "GONOPROXY",
                "GOSUMDB",
                "GONOSUMDB",
                "GOPRIVATE",
                "GOVCS",
                "GOROOT",
                "GOAUTH",
            ];
            let compiles = text.starts_with("GO") && !source.contains(&text.as_ref());
            if compiles || text.starts_with("CGO_") {
                command.env_remove(&name);
            }
        }
        command
            .envs([("CGO_ENABLED", "0"), ("GOOS", "linux"), ("GOARCH", "amd64")])
            .envs([
                ("GOAMD64", "v1"),
                ("GOTOOLCHAIN", "local"),
                ("GOWORK", "off"),
            ])
            .env("GOFLAGS", "-mod=readonly -buildvcs=false -trimpath")
            .env("GOCACHE", self.caches.join("build"))
            .env("GOMODCACHE", self.caches.join("mod"));
        command
    }

    /// Builds a module's programs from its code, with the versions of a `go.mod`, into `out`, under the names `go` gives them. `go` shares `lock`, for the case that
    /// this program is killed and leaves it running. `say` hears how far it is.
    pub fn build_programs(
        &self,
        module: &Module,
        version: &str,
        (source, requirements, out): (&Path, &Path, &Path),
        lock: &File,
        say: &mut dyn FnMut(&str),
    ) -> Result<()> {
        // Without vet, which go test would run on every package of the programs.
        let tests = ["test", "-c", "-vet=off"];
        for (words, are_tests) in [(&["build", "-v"][..], false), (&tests[..], true)] {
            let packages: Vec<_> = module
                .binaries
                .iter()
                .filter(|binary| binary.is_test() == are_tests)
                .map(|binary| binary.package)
                .collect();
            if packages.is_empty() {
                continue;
            }
            if are_tests {
                say(&format!(
                    "{}: tests, of which go names no packages",
                    module.name
                ));
            }
            let mut command = self.go_command();
            command.stdin(Stdio::from(lock.try_clone()?));
            command
                .current_dir(source)
                .args(words)
                .args(["-tags", module.tags, "-modfile"])
                .arg(requirements);
            command
                .arg("-ldflags")
                .arg(module.linker_flags(version))
                // The linker drops it (`-w`), and compiling it takes a tenth of the time.
                .arg("-gcflags=all=-dwarf=false")
                .arg("-o")
                .arg(out.join(""))
                .args(packages);
            run(&mut command, module.name, say)?;
        }
        Ok(())
    }

    /// The folder with the code of the upstream of a module that was built.
    pub fn find_module(
        &self,
        module: &Module,
        source: &Path,
        requirements: &Path,
    ) -> Result<PathBuf> {
        let mut command = self.go_command();
        command
            .current_dir(source)
            .args(["list", "-m", "-f", "{{.Dir}}", "-modfile"]);
        command.arg(requirements).args(module.upstream);
        let said = crate::tool::run(&mut command)?;
        Ok(PathBuf::from(said.trim()))
    }

    /// Removes the caches: what they are for is built. Go keeps its module cache read-only, so Go removes it.
    pub fn drop_caches(&self) -> Result<()> {
        let status = self
            .go_command()
            .args(["clean", "-cache", "-modcache"])
            .status()
            .context(MISSING)?;
        ensure!(status.success(), "go clean ended with {status}");
        Ok(())
    }
}

/// Whether a Go version is at least 1.26.
fn new_enough(version: &str) -> bool {
    let mut numbers = version
        .trim_start_matches("go")
        .split('.')
        .map(|part| part.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(Some(major)), Some(Some(minor))) if (major, minor) >= (1, 26))
}

/// Runs `go`; `go build -v` names each package as it is compiled.
fn run(command: &mut Command, name: &str, say: &mut dyn FnMut(&str)) -> Result<()> {
    let mut child = command.stderr(Stdio::piped()).spawn().context(MISSING)?;
    let output = child.stderr.take().context("go has no output")?;
    let started = Instant::now();
    let (mut last, mut said, mut count) = (VecDeque::new(), started, 0_u32);
    for line in BufReader::new(output).lines() {
        let line = line.context("reading what go says")?;
        count += u32::from(!line.contains(' '));
        last.push_back(line);
        if last.len() > LINES {
            last.pop_front();
        }
        if said.elapsed() >= PAUSE {
            said = Instant::now();
            say(&format!(
                "{name}: {count} packages after {} s",
                started.elapsed().as_secs()
            ));
        }
    }
    let status = child.wait().context("waiting for go")?;
    if !status.success() {
        let last = Vec::from(last).join("\n");
        bail!("building {name} failed ({status}):\n{last}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::new_enough;

    #[test]
    fn debians_go_is_too_old() {
        for (version, enough) in [
            ("go1.19.8", false),
            ("go1.26.8", true),
            ("go1.26", true),
            ("go2.0", true),
            ("", false),
        ] {
            assert_eq!(new_enough(version), enough, "{version}");
        }
    }
}
