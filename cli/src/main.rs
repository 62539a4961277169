//! kctl: Kubernetes clusters on AWS from one spec.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
