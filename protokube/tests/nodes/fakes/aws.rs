//! STS that tells who signed, and EC2 that describes instances; both in one place.

use super::http::{Received, Reply, reply, serve};
use super::signature::{expected, part};
use futures::FutureExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub const ACCOUNT: &str = "123456789012";

/// What AWS knows.
#[derive(Default)]
pub struct Aws {
    /// By access key: its secret and its ARN.
    pub keys: BTreeMap<String, (String, String)>,
    pub instances: Vec<Instance>,
    /// Actions that were asked for.
    pub calls: Vec<String>,
    /// Actions that fail with this status and code.
    pub failing: Option<(u16, &'static str)>,
    /// How long STS takes, how many ask it now, and how many did at most.
    pub sts: (Duration, usize, usize),
}

#[derive(Clone)]
pub struct Instance {
    pub id: String,
    pub state: String,
    pub private_ip: String,
    pub public_ip: String,
    pub profile: String,
    pub tags: BTreeMap<String, String>,
}

#[derive(Clone, Default)]
pub struct FakeAws(Arc<Mutex<Aws>>);

impl FakeAws {
    /// What it knows, to change or look at.
    pub fn state(&self) -> MutexGuard<'_, Aws> {
        self.0.lock().unwrap()
    }

    /// How often an action was asked for.
    pub fn calls(&self, action: &str) -> usize {
        let calls = &self.state().calls;
        calls.iter().filter(|call| *call == action).count()
    }

    pub async fn start(&self) -> String {
        let aws = self.clone();
        serve(move |request| {
            let aws = aws.clone();
            async move { aws.answer_in_time(&request).await }.boxed()
        })
        .await
    }

    async fn answer_in_time(&self, request: &Received) -> Reply {
        let sts = request
            .body
            .windows(17)
            .any(|part| part == b"GetCallerIdentity");
        if sts {
            let pause = {
                let mut state = self.state();
                let (pause, now, most) = &mut state.sts;
                *now += 1;
                *most = (*most).max(*now);
                *pause
            };
            tokio::time::sleep(pause).await;
            self.state().sts.1 -= 1;
        }
        self.answer(request)
    }

    fn answer(&self, request: &Received) -> Reply {
        let form: BTreeMap<String, String> = reqwest::Url::parse("http://form/")
            .map(|mut url| {
                url.set_query(Some(std::str::from_utf8(&request.body).unwrap()));
                url.query_pairs().into_owned().collect()
            })
            .unwrap();
        let action = form["Action"].clone();
        let mut aws = self.state();
        aws.calls.push(action.clone());
        if let Some((status, code)) = aws.failing {
            return error(status, code, "");
        }
        let key = part(&request.headers, "Credential=").split('/').next();
        let Some((secret, arn)) = aws.keys.get(key.unwrap()) else {
            return error(403, "InvalidClientTokenId", "no such key");
        };
        if part(&request.headers, "Signature=") != expected(&request.headers, &request.body, secret)
        {
            // As the real one does: everything that was signed, the session's token too.
            let message = format!(
                "The Canonical String should have been {:?}",
                request.headers
            );
            return error(403, "SignatureDoesNotMatch", &message);
        }
        match action.as_str() {
            "GetCallerIdentity" => reply(200, identity(arn)),
            "DescribeInstances" => reply(200, describe(&aws.instances, &form)),
            other => panic!("nobody asks for {other}"),
        }
    }
}

fn error(status: u16, code: &str, message: &str) -> Reply {
    let message = message.replace('"', "&quot;").replace(['<', '&'], " ");
    reply(
        status,
        format!("<E><Error><Code>{code}</Code><Message>{message}</Message></Error></E>"),
    )
}

fn identity(arn: &str) -> String {
    let account = arn.split(':').nth(4).unwrap();
    format!(
        "<R><GetCallerIdentityResult><Arn>{arn}</Arn><UserId>AROA:x</UserId><Account>{account}</Account></GetCallerIdentityResult></R>"
    )
}

fn describe(instances: &[Instance], form: &BTreeMap<String, String>) -> String {
    let name = &form["Filter.1.Name"];
    let values: Vec<&String> = form
        .iter()
        .filter(|(key, _)| key.starts_with("Filter.1.Value."))
        .map(|(_, value)| value)
        .collect();
    let matches = |instance: &&Instance| match name.strip_prefix("tag:") {
        Some(tag) => instance
            .tags
            .get(tag)
            .is_some_and(|value| values.contains(&value)),
        None => values.contains(&&instance.id),
    };
    let items: String = instances.iter().filter(matches).map(item).collect();
    format!(
        "<R><reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet></R>"
    )
}

fn item(instance: &Instance) -> String {
    let Instance {
        id,
        state,
        private_ip,
        public_ip,
        profile,
        tags,
    } = instance;
    let tags: String = tags
        .iter()
        .map(|(key, value)| format!("<item><key>{key}</key><value>{value}</value></item>"))
        .collect();
    let public_dns = format!(
        "ec2-{}.eu-west-1.compute.amazonaws.com",
        public_ip.replace('.', "-")
    );
    format!(
        "<item><instanceId>{id}</instanceId><instanceState><name>{state}</name></instanceState>
        <placement><availabilityZone>eu-west-1a</availabilityZone></placement>
        <privateDnsName>{id}.eu-west-1.compute.internal</privateDnsName><dnsName>{public_dns}</dnsName>
        <iamInstanceProfile><arn>arn:aws:iam::{ACCOUNT}:instance-profile/{profile}</arn><id>AIPA</id></iamInstanceProfile>
        <privateIpAddress>{private_ip}</privateIpAddress><ipAddress>{public_ip}</ipAddress>
        <networkInterfaceSet><item><ipv6AddressesSet><item><ipv6Address>2001:db8:0:0::7</ipv6Address></item></ipv6AddressesSet>
        </item></networkInterfaceSet><tagSet>{tags}</tagSet></item>"
    )
}
