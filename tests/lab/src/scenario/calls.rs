//! AWS API calls of scenarios, as the operator: one Python process with boto3 makes them all, since starting one takes longer than a
//! call.

use crate::daemon::LabAddresses;
use crate::lab_paths::LabPaths;
use crate::operator;
use crate::process::Process;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const PROGRAM: &str = include_str!("calls.py");

/// An error response of AWS.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{code} ({status}): {message}")]
struct Refusal {
    status: u16,
    /// Error code of AWS, for example `VolumeInUse`.
    code: String,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallAnswer {
    Done(Value),
    Refused(Refusal),
    /// The call was not sent, or got no response.
    Failed(String),
}

/// The Python process that makes the AWS calls.
#[derive(Debug)]
pub struct AwsCalls {
    child: Child,
    /// `None` after [`Self::end_process`].
    pipes: RefCell<Option<(ChildStdin, BufReader<ChildStdout>)>>,
}

impl AwsCalls {
    pub fn start(place: &LabPaths, up: &LabAddresses, python: &Path) -> Result<Self> {
        let words = [
            python.display().to_string(),
            "-c".to_owned(),
            PROGRAM.to_owned(),
        ];
        let mut child = operator::operator_command(place, up, &words)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a Python for AWS calls")?;
        let (Some(calls), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the Python for AWS calls has no pipes");
        };
        Ok(Self {
            child,
            pipes: RefCell::new(Some((calls, BufReader::new(answers)))),
        })
    }

    pub fn process(&self) -> Result<Process> {
        Process::from_pid(self.child.id())
    }

    /// Calls `operation` of a service as boto3 names it (`ec2`, `autoscaling`, `elbv2`), with AWS's names for operation and
    /// parameters. A refusal is an error with its code.
    pub fn call_aws(&self, service: &str, operation: &str, parameters: &Value) -> Result<Value> {
        let call = json!({"service": service, "operation": operation, "parameters": parameters});
        let answer = self.send_call(&call);
        match answer.with_context(|| format!("calling {service} {operation}"))? {
            CallAnswer::Done(value) => Ok(value),
            CallAnswer::Refused(refusal) => {
                Err(refusal).with_context(|| format!("{service} {operation} was refused"))
            }
            CallAnswer::Failed(why) => bail!("{service} {operation} failed: {why}"),
        }
    }

    fn send_call(&self, call: &Value) -> Result<CallAnswer> {
        let mut pipes = self.pipes.borrow_mut();
        let (calls, answers) = pipes.as_mut().context("the lab is going down")?;
        writeln!(calls, "{call}").context("the Python for AWS calls has ended")?;
        let mut line = String::new();
        answers.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("it answered {line:?}"))
    }

    /// Ends the Python process; later calls fail.
    pub fn end_process(&mut self) {
        drop(self.pipes.borrow_mut().take());
        // It ends with its input.
        let _ = self.child.wait();
    }
}

impl Drop for AwsCalls {
    fn drop(&mut self) {
        self.end_process();
    }
}
