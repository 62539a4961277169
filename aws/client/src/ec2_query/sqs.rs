//! SQS as protokube asks it, in the JSON protocol
//! (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-making-api-requests-json.html>).

use super::Ec2QueryClient;
use crate::failure::local_failure;
use crate::json_answer::parse_json_answer;
use engine::{Class, Failure};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// Largest number of messages in one answer.
const MAX_MESSAGES: u32 = 10;

/// A queue of this account, in the region of the instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Twelve digits.
    pub account: String,
    pub name: String,
}

/// A message that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    /// Names this reception when the message is deleted.
    pub receipt: String,
    pub body: String,
}

impl Ec2QueryClient {
    /// Waits up to `wait` (at most 15 s) for messages. A message that is not deleted is received again after `visible_after`.
    pub async fn receive_messages(
        &self,
        queue: &Queue,
        wait: Duration,
        visible_after: Duration,
    ) -> Result<Vec<QueueMessage>, Failure> {
        let parameters = json!({
            "QueueUrl": self.queue_url(queue),
            "MaxNumberOfMessages": MAX_MESSAGES,
            "WaitTimeSeconds": wait.as_secs(),
            "VisibilityTimeout": visible_after.as_secs(),
        });
        let answer = self.call_sqs("ReceiveMessage", &parameters).await?;
        let messages = answer.get("Messages").and_then(Value::as_array);
        let text = |message: &Value, name: &str| Some(message.get(name)?.as_str()?.to_owned());
        let messages = messages.into_iter().flatten().filter_map(|message| {
            Some(QueueMessage {
                receipt: text(message, "ReceiptHandle")?,
                body: text(message, "Body")?,
            })
        });
        Ok(messages.collect())
    }

    /// Deletes a message that was received.
    pub async fn delete_message(&self, queue: &Queue, receipt: &str) -> Result<(), Failure> {
        let parameters = json!({"QueueUrl": self.queue_url(queue), "ReceiptHandle": receipt});
        self.call_sqs("DeleteMessage", &parameters).await.map(drop)
    }

    fn queue_url(&self, queue: &Queue) -> String {
        format!("{}{}/{}", self.endpoint("sqs"), queue.account, queue.name)
    }

    async fn call_sqs(&self, action: &str, parameters: &Value) -> Result<Value, Failure> {
        let call = format!("sqs:{action}");
        let headers = [
            ("content-type", "application/x-amz-json-1.0".to_owned()),
            ("x-amz-target", format!("AmazonSQS.{action}")),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        let body = parameters.to_string();
        let signed = self
            .sign("sqs", &body, &headers, SystemTime::now())
            .await
            .map_err(|error| local_failure(Class::Denied, &call, error))?;
        parse_json_answer(&call, self.send(&call, &signed).await?)
    }
}
