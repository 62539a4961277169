//! Approving kubelets' certificates: serving certificates whose names and addresses EC2 confirms, and renewals of client
//! certificates of instances that run. Others are left alone, for whoever else may know better, with a line for each Node.

use crate::log::Log;
use crate::tally::Tally;
use crate::watching::{WATCH_SECONDS, until_changed};
use anyhow::Context;
use aws_client::machine::{Instance, Machine};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest as Request;
use kube::api::{ListParams, Patch, PatchParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{KubeletRequest, Seen, check_client, check_instance, check_serving, echo};
use node::report::Status;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How protokube's lines call this part.
const STAGE: &str = "approval";
/// Who signs kubelets' serving certificates.
const SERVING: &str = "kubernetes.io/kubelet-serving";
/// Who signs their client certificates.
const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// What was left alone is looked at again after this long: addresses come and go.
const AGAIN: Duration = Duration::from_mins(1);
/// Between two looks at EC2: a kubelet may ask without end.
const PACE: Duration = Duration::from_secs(1);
/// Between two lines about one Node that say the same of its requests.
const TOLD: Duration = Duration::from_mins(1);
/// Instances that one call names.
const CALL: usize = 200;

/// A Node's user, and what became of its request.
type Told = Tally<(String, bool)>;

/// Approves for ever; that the API or EC2 cannot be asked ends it. What the API refuses to write is left alone: one Node's
/// request must not keep the others waiting.
pub async fn run(client: Client, machine: Machine, cluster: &str, log: &Log) -> anyhow::Result<()> {
    let requests: Api<Request> = Api::all(client);
    let mut left_alone: BTreeMap<String, Instant> = BTreeMap::new();
    let told = Told::new(log.clone(), STAGE, TOLD);
    loop {
        let begun = tokio::time::Instant::now();
        let listed = requests.list(&ListParams::default()).await;
        let listed = listed.context("could not list certificate signing requests")?;
        let version = listed.metadata.resource_version.unwrap_or_default();
        let pending: Vec<Request> = listed.items.into_iter().filter(is_pending).collect();
        left_alone.retain(|name, _| pending.iter().any(|one| one.name_any() == *name));
        let due = pending.iter().filter(|one| {
            let since = left_alone.get(&one.name_any());
            since.is_none_or(|since| since.elapsed() >= AGAIN)
        });
        let due: Vec<&Request> = due.collect();
        for (request, why) in decide(&requests, &machine, cluster, &due, &told).await? {
            let known = left_alone.insert(request.name_any(), Instant::now());
            if known.is_none() {
                tell(
                    &told,
                    request,
                    Status::Failed,
                    &format!("left alone: {}", echo(&why)),
                );
            }
        }
        told.catch_up();
        let watch = WatchParams::default().timeout(WATCH_SECONDS);
        let watch = requests.watch(&watch, &version).await;
        let watch = watch.context("could not watch certificate signing requests")?;
        let matters = |one: &Request| is_pending(one) && !left_alone.contains_key(&one.name_any());
        let changed = until_changed(watch, matters).await;
        changed.context("could not watch certificate signing requests")?;
        tokio::time::sleep_until(begun + PACE).await;
    }
}

/// Approves what EC2 confirms, with one look at EC2; what is left alone, and why.
async fn decide<'a>(
    requests: &Api<Request>,
    machine: &Machine,
    cluster: &str,
    due: &[&'a Request],
    told: &Told,
) -> anyhow::Result<Vec<(&'a Request, String)>> {
    let ids = due
        .iter()
        .filter_map(|request| said(request).instance().ok());
    let ids: BTreeSet<&str> = ids.collect();
    let instances = look(machine, &ids.into_iter().collect::<Vec<_>>()).await?;
    let mut left = Vec::new();
    for request in due {
        match confirmed(request, &instances, cluster) {
            Ok(()) => match approve(requests, request).await? {
                Ok(()) => tell(told, request, Status::Finished, "approved"),
                Err(why) => left.push((*request, why)),
            },
            Err(why) => left.push((*request, why)),
        }
    }
    Ok(left)
}

async fn look(machine: &Machine, ids: &[&str]) -> anyhow::Result<BTreeMap<String, Instance>> {
    let mut found = BTreeMap::new();
    for ids in ids.chunks(CALL) {
        let instances = machine.instances(&[("instance-id", ids)]).await?;
        found.extend(instances.into_iter().map(|one| (one.id.clone(), one)));
    }
    Ok(found)
}

fn confirmed(
    request: &Request,
    instances: &BTreeMap<String, Instance>,
    cluster: &str,
) -> Result<(), String> {
    let asked = said(request);
    let id = asked.instance()?;
    let instance = instances.get(id);
    let seen = instance.map(|instance| Seen {
        state: &instance.state,
        tags: &instance.tags,
    });
    check_instance(id, seen, cluster).map_err(|refusal| refusal.to_string())?;
    if request.spec.signer_name == CLIENT {
        return check_client(&asked);
    }
    check_serving(&asked, &instance.map(names).unwrap_or_default())
}

/// Every name and address that EC2 says an instance has, addresses in their shortest form.
fn names(instance: &Instance) -> BTreeSet<String> {
    let own = [&instance.private_dns_name, &instance.public_dns_name];
    let addresses = instance.private_ip.iter().chain(&instance.public_ip);
    let all = own.into_iter().chain(addresses).chain(&instance.addresses);
    let all = all.filter(|name| !name.is_empty()).map(|name| {
        let address = name.parse::<IpAddr>();
        address.map_or_else(|_| name.clone(), |address| address.to_string())
    });
    all.collect()
}

fn said(request: &Request) -> KubeletRequest<'_> {
    let spec = &request.spec;
    KubeletRequest {
        user: spec.username.as_deref().unwrap_or_default(),
        groups: spec.groups.as_deref().unwrap_or_default(),
        usages: spec.usages.as_deref().unwrap_or_default(),
        request: &spec.request.0,
    }
}

/// For a kubelet's certificate, and neither approved nor denied yet.
fn is_pending(request: &Request) -> bool {
    if ![SERVING, CLIENT].contains(&request.spec.signer_name.as_str()) {
        return false;
    }
    let status = request.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    conditions.is_none_or(Vec::is_empty)
}

/// Approves it as it was looked at: whoever was quicker, for or against, has the say. What is left is what the API refused.
async fn approve(requests: &Api<Request>, request: &Request) -> anyhow::Result<Result<(), String>> {
    let name = request.name_any();
    let approved = json!({
        "metadata": { "resourceVersion": request.metadata.resource_version },
        "status": { "conditions": [{
            "type": "Approved",
            "status": "True",
            "reason": "ConfirmedByEC2",
            "message": "EC2 says that the instance runs, is this cluster's, and has what the request names.",
        }] },
    });
    let approved = Patch::Merge(approved);
    let parameters = PatchParams::default();
    let answer = requests.patch_approval(&name, &parameters, &approved).await;
    match answer {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(Ok(())),
        Err(kube::Error::Api(status)) => Ok(Err(format!(
            "the API does not take the approval: {}",
            status.message
        ))),
        Err(error) => Err(error).with_context(|| format!("could not approve {name}")),
    }
}

fn tell(told: &Told, request: &Request, status: Status, what: &str) {
    let asked = said(request);
    let user = echo(asked.user);
    let detail = format!("{} of {user}: {what}", request.name_any());
    let cause = (user, status == Status::Finished);
    told.say(cause, status, asked.instance().ok(), &detail);
}
