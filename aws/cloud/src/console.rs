//! What an instance wrote to its serial console: the only word of one that nothing else can hear.

use crate::CloudClients;
use aws_client::failure::{Classify, local_failure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{Class, Failure};

const CALL: &str = "ec2:GetConsoleOutput";

/// Instances without Nitro have no newest output: theirs is what EC2 took last, by itself.
const NO_NEWEST: &str = "UnsupportedOperation";

/// The end of a console, at most 64 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// Text, whatever the instance wrote.
    pub text: String,
    /// When EC2 took it, in seconds since 1970.
    pub at: Option<i64>,
}

/// The newest output of an instance's console; `None`: nothing yet. One call, two for instances without Nitro.
pub async fn console_output(
    clients: &CloudClients,
    instance: &str,
) -> Result<Option<Console>, Failure> {
    let ask = |newest: bool| {
        let call = clients.ec2.get_console_output().instance_id(instance);
        call.set_latest(newest.then_some(true)).send()
    };
    let answer = match ask(true).await.classify_call(CALL) {
        Err(failure) if failure.code == NO_NEWEST => ask(false).await.classify_call(CALL),
        answer => answer,
    }?;
    let Some(encoded) = answer.output.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let packed: String = encoded.split_whitespace().collect();
    let bytes = STANDARD.decode(packed).map_err(|error| {
        let message = format!("the output of {instance} is not base64: {error}");
        local_failure(Class::Unknown, CALL, message)
    })?;
    Ok(Some(Console {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        at: answer.timestamp.map(|time| time.secs()),
    }))
}
