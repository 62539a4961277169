//! protokube's command line.

#![warn(unreachable_pub)]

use aws_client::fips;
use protokube::arguments::{Invocation, USAGE, parse_arguments};
use protokube::{admin_kubeconfig, etcd_backup, service};
use protokube_role::log::Log;
use std::io::Write;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // Arguments of any bytes: what is not text is an unknown argument.
    let given = std::env::args_os().skip(1);
    let given = given.map(|argument| argument.to_string_lossy().into_owned());
    let arguments = match parse_arguments(given) {
        Ok(Invocation::Run(arguments)) => arguments,
        Ok(Invocation::EtcdBackup(command)) => {
            return run_command(etcd_backup::run(&command)).await;
        }
        Ok(Invocation::AdminKubeconfig(command)) => {
            return run_command(admin_kubeconfig::run(&command)).await;
        }
        Ok(Invocation::Say(text)) => {
            let _ = writeln!(std::io::stdout(), "{text}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "protokube: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match service::run_service(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failed = node::report::Status::Failed;
            Log::unqueued_stderr().write_stage("start", failed, None, &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs a command until it ends or a signal stops it.
async fn run_command(command: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    let run = async {
        fips::check_start()?;
        command.await
    };
    let ended = tokio::select! {
        ended = run => ended,
        stopped = service::wait_for_stop() => stopped,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "protokube: {error:#}");
            ExitCode::FAILURE
        }
    }
}
