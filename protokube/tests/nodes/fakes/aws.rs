//! Fake STS, EC2, SQS and Auto Scaling on one address: STS verifies signatures, EC2 describes instances, SQS has one queue.

use super::http::{ReceivedRequest, Reply, serve_http, text_reply};
use super::signature::{authorization_part, expected_signature};
use futures::FutureExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub const ACCOUNT: &str = "123456789012";

/// State of the fake services.
#[derive(Default)]
pub struct AwsState {
    /// Secret key and ARN by access key.
    pub keys: BTreeMap<String, (String, String)>,
    pub instances: Vec<FakeInstance>,
    /// Actions of all requests.
    pub calls: Vec<String>,
    /// Actions that fail with this status and code.
    pub failing: Option<(u16, &'static str)>,
    /// Messages in the queue, and when each is received next.
    pub messages: Vec<(String, Instant)>,
    /// Instances whose hook was completed, with the hook, in order.
    pub completed_hooks: Vec<(String, String)>,
    /// Instances whose hooks were extended.
    pub extended_hooks: Vec<String>,
    /// Auto Scaling group and lifecycle state by instance.
    pub scaling: BTreeMap<String, (String, &'static str)>,
    /// Delegated ranges of IPv6 addresses by instance.
    pub prefixes: BTreeMap<String, String>,
    /// Duration of an STS call, current and highest number of parallel calls.
    pub sts: (Duration, usize, usize),
}

#[derive(Clone)]
pub struct FakeInstance {
    pub id: String,
    pub state: String,
    pub private_ip: String,
    pub public_ip: String,
    pub profile: String,
    pub spot: bool,
    pub tags: BTreeMap<String, String>,
}

#[derive(Clone, Default)]
pub struct FakeAws(Arc<Mutex<AwsState>>);

impl FakeAws {
    /// Locks the state for reading or changing.
    pub fn lock_state(&self) -> MutexGuard<'_, AwsState> {
        self.0.lock().unwrap()
    }

    /// Number of requests of an action.
    pub fn count_calls(&self, action: &str) -> usize {
        let calls = &self.lock_state().calls;
        calls.iter().filter(|call| *call == action).count()
    }

    pub async fn start(&self) -> String {
        let aws = self.clone();
        serve_http(move |request| {
            let aws = aws.clone();
            async move { aws.answer_in_time(&request).await }.boxed()
        })
        .await
    }

    async fn answer_in_time(&self, request: &ReceivedRequest) -> Reply {
        let sts = request
            .body
            .windows(17)
            .any(|part| part == b"GetCallerIdentity");
        if sts {
            let pause = {
                let mut state = self.lock_state();
                let (pause, now, most) = &mut state.sts;
                *now += 1;
                *most = (*most).max(*now);
                *pause
            };
            tokio::time::sleep(pause).await;
            self.lock_state().sts.1 -= 1;
        }
        if request.headers.contains_key("x-amz-target") {
            return self.answer_queue(request).await;
        }
        self.answer_request(request)
    }

    /// Puts an event into the queue.
    pub fn send_message(&self, event: &Value) {
        let message = (event.to_string(), Instant::now());
        self.lock_state().messages.push(message);
    }

    /// SQS: the index of a message is its receipt. Deleted messages are empty.
    async fn answer_queue(&self, request: &ReceivedRequest) -> Reply {
        let action = request.headers["x-amz-target"].rsplit('.').next().unwrap();
        let parameters: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(
            parameters["QueueUrl"].as_str().unwrap().rsplit('/').next(),
            Some("queue")
        );
        self.lock_state().calls.push(action.to_owned());
        if action == "DeleteMessage" {
            let receipt: usize = parameters["ReceiptHandle"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            self.lock_state().messages[receipt].0.clear();
            return text_reply(200, String::new());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        let again = Duration::from_secs(parameters["VisibilityTimeout"].as_u64().unwrap());
        let now = Instant::now();
        let mut state = self.lock_state();
        let all = state.messages.iter_mut().enumerate();
        let due = all.filter(|(_, (body, when))| !body.is_empty() && *when <= now);
        let messages: Vec<Value> = due
            .map(|(receipt, (body, when))| {
                *when = now + again.max(Duration::from_millis(20));
                json!({"Body": body, "ReceiptHandle": receipt.to_string()})
            })
            .collect();
        text_reply(200, json!({"Messages": messages}).to_string())
    }

    fn answer_request(&self, request: &ReceivedRequest) -> Reply {
        let form: BTreeMap<String, String> = reqwest::Url::parse("http://form/")
            .map(|mut url| {
                url.set_query(Some(std::str::from_utf8(&request.body).unwrap()));
                url.query_pairs().into_owned().collect()
            })
            .unwrap();
        let action = form["Action"].clone();
        let mut aws = self.lock_state();
        aws.calls.push(action.clone());
        if let Some((status, code)) = aws.failing {
            return error_reply(status, code, "");
        }
        let key = authorization_part(&request.headers, "Credential=")
            .split('/')
            .next();
        let Some((secret, arn)) = aws.keys.get(key.unwrap()) else {
            return error_reply(403, "InvalidClientTokenId", "no such key");
        };
        if authorization_part(&request.headers, "Signature=")
            != expected_signature(&request.headers, &request.body, secret)
        {
            // STS also quotes everything that was signed, including the session token.
            let message = format!(
                "The Canonical String should have been {:?}",
                request.headers
            );
            return error_reply(403, "SignatureDoesNotMatch", &message);
        }
        match action.as_str() {
            "GetCallerIdentity" => text_reply(200, caller_identity(arn)),
            "DescribeInstances" => text_reply(200, describe_instances(&aws, &form)),
            "AssignIpv6Addresses" => {
                assert_eq!(form["Ipv6PrefixCount"], "1");
                let instance = form["NetworkInterfaceId"].trim_start_matches("eni-of-");
                let prefix = format!("2001:db8:0:0:{:x}::/80", aws.prefixes.len() + 1);
                let known = aws.prefixes.insert(instance.to_owned(), prefix.clone());
                assert_eq!(known, None, "{instance} has a range");
                text_reply(
                    200,
                    format!(
                        "<R><assignedIpv6PrefixSet><item>{prefix}</item></assignedIpv6PrefixSet></R>"
                    ),
                )
            }
            "DescribeAutoScalingInstances" => {
                let instance = &form["InstanceIds.member.1"];
                text_reply(200, scaling_member(aws.scaling.get(instance)))
            }
            "CompleteLifecycleAction" => {
                let completed = (
                    form["InstanceId"].clone(),
                    form["LifecycleHookName"].clone(),
                );
                aws.completed_hooks.push(completed);
                text_reply(200, "<R/>".to_owned())
            }
            "RecordLifecycleActionHeartbeat" => {
                aws.extended_hooks.push(form["InstanceId"].clone());
                text_reply(200, "<R/>".to_owned())
            }
            other => panic!("nobody asks for {other}"),
        }
    }
}

fn error_reply(status: u16, code: &str, message: &str) -> Reply {
    let message = message.replace('"', "&quot;").replace(['<', '&'], " ");
    text_reply(
        status,
        format!("<E><Error><Code>{code}</Code><Message>{message}</Message></Error></E>"),
    )
}

fn caller_identity(arn: &str) -> String {
    let account = arn.split(':').nth(4).unwrap();
    format!(
        "<R><GetCallerIdentityResult><Arn>{arn}</Arn><UserId>AROA:x</UserId><Account>{account}</Account></GetCallerIdentityResult></R>"
    )
}

fn scaling_member(member: Option<&(String, &str)>) -> String {
    let member = member.map(|(group, state)| {
        format!("<member><AutoScalingGroupName>{group}</AutoScalingGroupName><LifecycleState>{state}</LifecycleState></member>")
    });
    format!(
        "<R xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\"><DescribeAutoScalingInstancesResult>\
        <AutoScalingInstances>{}</AutoScalingInstances></DescribeAutoScalingInstancesResult></R>",
        member.unwrap_or_default()
    )
}

fn describe_instances(aws: &AwsState, form: &BTreeMap<String, String>) -> String {
    let name = &form["Filter.1.Name"];
    let values: Vec<&String> = form
        .iter()
        .filter(|(key, _)| key.starts_with("Filter.1.Value."))
        .map(|(_, value)| value)
        .collect();
    let matches = |instance: &&FakeInstance| match name.strip_prefix("tag:") {
        Some(tag) => instance
            .tags
            .get(tag)
            .is_some_and(|value| values.contains(&value)),
        None => values.contains(&&instance.id),
    };
    let items: String = aws
        .instances
        .iter()
        .filter(matches)
        .map(|instance| instance_item(instance, aws.prefixes.get(&instance.id)))
        .collect();
    format!(
        "<R><reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet></R>"
    )
}

fn instance_item(instance: &FakeInstance, prefix: Option<&String>) -> String {
    let FakeInstance {
        id,
        state,
        private_ip,
        public_ip,
        profile,
        spot,
        tags,
    } = instance;
    let lifecycle = if *spot {
        "<instanceLifecycle>spot</instanceLifecycle>"
    } else {
        ""
    };
    let tags: String = tags
        .iter()
        .map(|(key, value)| format!("<item><key>{key}</key><value>{value}</value></item>"))
        .collect();
    let prefix: String = prefix
        .map(|prefix| format!("<item><ipv6Prefix>{prefix}</ipv6Prefix></item>"))
        .unwrap_or_default();
    let public_dns = format!(
        "ec2-{}.eu-west-1.compute.amazonaws.com",
        public_ip.replace('.', "-")
    );
    format!(
        "<item><instanceId>{id}</instanceId><instanceState><name>{state}</name></instanceState>{lifecycle}
        <placement><availabilityZone>eu-west-1a</availabilityZone></placement>
        <privateDnsName>{id}.eu-west-1.compute.internal</privateDnsName><dnsName>{public_dns}</dnsName>
        <iamInstanceProfile><arn>arn:aws:iam::{ACCOUNT}:instance-profile/{profile}</arn><id>AIPA</id></iamInstanceProfile>
        <privateIpAddress>{private_ip}</privateIpAddress><ipAddress>{public_ip}</ipAddress>
        <networkInterfaceSet><item><networkInterfaceId>eni-of-{id}</networkInterfaceId><attachment><deviceIndex>0</deviceIndex></attachment>
        <ipv6PrefixSet>{prefix}</ipv6PrefixSet><ipv6AddressesSet><item><ipv6Address>2001:db8:0:0::7</ipv6Address></item></ipv6AddressesSet>
        </item></networkInterfaceSet><tagSet>{tags}</tagSet></item>"
    )
}
