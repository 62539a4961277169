//! Role approval: approves kubelets' serving certificates whose names and addresses EC2 confirms, and renewals of client
//! certificates of running instances. Other requests are left pending for other approvers, with a log line per Node.

use crate::limited_log::LimitedLog;
use crate::log::Log;
use crate::watch_events::{WATCH_SECONDS, wait_for_change};
use anyhow::Context;
use aws_client::ec2_query::{Ec2QueryClient, Instance};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest as Request;
use kube::api::{ListParams, Patch, PatchParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{
    KubeletRequest, SeenInstance, check_client, check_instance, check_serving, untrusted_excerpt,
};
use node::report::Status;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Name of the role in log lines.
const STAGE: &str = "approval";
/// Signer of kubelets' serving certificates.
const SERVING: &str = "kubernetes.io/kubelet-serving";
/// Signer of kubelets' client certificates.
const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Time after which a pending request is checked again, because addresses change.
const AGAIN: Duration = Duration::from_mins(1);
/// Shortest time between two calls of EC2, because a kubelet may create requests without end.
const PACE: Duration = Duration::from_secs(1);
/// Shortest time between two lines with the same result for one Node.
const LOG_INTERVAL: Duration = Duration::from_mins(1);
/// Largest number of instances in one call.
const BATCH_SIZE: usize = 200;

/// Counts log lines by user and result.
type ApprovalLog = LimitedLog<(String, bool)>;

/// Approves requests until a call of the API or EC2 fails. If the API rejects a single approval, that request stays pending, so
/// that one Node does not block others.
pub async fn approve_requests(
    client: Client,
    ec2: Ec2QueryClient,
    cluster: &str,
    log: &Log,
) -> anyhow::Result<()> {
    let requests: Api<Request> = Api::all(client);
    let mut left_alone: BTreeMap<String, Instant> = BTreeMap::new();
    let decision_log = ApprovalLog::new(log.clone(), STAGE, LOG_INTERVAL);
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
        for (request, why) in approve_due(&requests, &ec2, cluster, &due, &decision_log).await? {
            let known = left_alone.insert(request.name_any(), Instant::now());
            if known.is_none() {
                log_decision(
                    &decision_log,
                    request,
                    Status::Failed,
                    &format!("not approved: {}", untrusted_excerpt(&why)),
                );
            }
        }
        decision_log.log_counted();
        let watch = WatchParams::default().timeout(WATCH_SECONDS);
        let watch = requests.watch(&watch, &version).await;
        let watch = watch.context("could not watch certificate signing requests")?;
        let matters = |one: &Request| is_pending(one) && !left_alone.contains_key(&one.name_any());
        let changed = wait_for_change(watch, matters).await;
        changed.context("could not watch certificate signing requests")?;
        tokio::time::sleep_until(begun + PACE).await;
    }
}

/// Approves the requests that EC2 confirms. Returns the others with the reasons.
async fn approve_due<'a>(
    requests: &Api<Request>,
    ec2: &Ec2QueryClient,
    cluster: &str,
    due: &[&'a Request],
    decision_log: &ApprovalLog,
) -> anyhow::Result<Vec<(&'a Request, String)>> {
    let ids = due
        .iter()
        .filter_map(|request| to_kubelet_request(request).instance().ok());
    let ids: BTreeSet<&str> = ids.collect();
    let answer = describe_instances(ec2, &ids.into_iter().collect::<Vec<_>>()).await?;
    let mut left = Vec::new();
    for request in due {
        match check_request(request, &answer, cluster) {
            Ok(()) => match approve_request(requests, request).await? {
                Ok(()) => log_decision(decision_log, request, Status::Finished, "approved"),
                Err(why) => left.push((*request, why)),
            },
            Err(why) => left.push((*request, why)),
        }
    }
    Ok(left)
}

async fn describe_instances(
    ec2: &Ec2QueryClient,
    ids: &[&str],
) -> anyhow::Result<BTreeMap<String, Instance>> {
    let mut found = BTreeMap::new();
    for ids in ids.chunks(BATCH_SIZE) {
        let instances = ec2.describe_instances(&[("instance-id", ids)]).await?;
        found.extend(instances.into_iter().map(|one| (one.id.clone(), one)));
    }
    Ok(found)
}

fn check_request(
    request: &Request,
    instances: &BTreeMap<String, Instance>,
    cluster: &str,
) -> Result<(), String> {
    let kubelet_request = to_kubelet_request(request);
    let id = kubelet_request.instance()?;
    let instance = instances.get(id);
    let seen = instance.map(|instance| SeenInstance {
        state: &instance.state,
        tags: &instance.tags,
    });
    check_instance(id, seen, cluster).map_err(|refusal| refusal.to_string())?;
    if request.spec.signer_name == CLIENT {
        return check_client(&kubelet_request);
    }
    check_serving(
        &kubelet_request,
        &instance.map(confirmed_names).unwrap_or_default(),
    )
}

/// All names and addresses of an instance according to EC2, addresses in canonical form.
fn confirmed_names(instance: &Instance) -> BTreeSet<String> {
    let own = [&instance.private_dns_name, &instance.public_dns_name];
    let addresses = instance.private_ip.iter().chain(&instance.public_ip);
    let all = own.into_iter().chain(addresses).chain(&instance.addresses);
    let all = all.filter(|name| !name.is_empty()).map(|name| {
        let address = name.parse::<IpAddr>();
        address.map_or_else(|_| name.clone(), |address| address.to_string())
    });
    all.collect()
}

fn to_kubelet_request(request: &Request) -> KubeletRequest<'_> {
    let spec = &request.spec;
    KubeletRequest {
        user: spec.username.as_deref().unwrap_or_default(),
        groups: spec.groups.as_deref().unwrap_or_default(),
        usages: spec.usages.as_deref().unwrap_or_default(),
        request: &spec.request.0,
    }
}

/// True for a request of a kubelet that is neither approved nor denied.
fn is_pending(request: &Request) -> bool {
    if ![SERVING, CLIENT].contains(&request.spec.signer_name.as_str()) {
        return false;
    }
    let status = request.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    conditions.is_none_or(Vec::is_empty)
}

/// Approves a request if it has not changed since it was checked. The inner error is the API's reason for a rejection.
async fn approve_request(
    requests: &Api<Request>,
    request: &Request,
) -> anyhow::Result<Result<(), String>> {
    let name = request.name_any();
    let approved = json!({
        "metadata": { "resourceVersion": request.metadata.resource_version },
        "status": { "conditions": [{
            "type": "Approved",
            "status": "True",
            "reason": "ConfirmedByEC2",
            "message": "EC2 confirms that the instance runs, belongs to this cluster, and has the requested names and addresses.",
        }] },
    });
    let approved = Patch::Merge(approved);
    let parameters = PatchParams::default();
    let answer = requests.patch_approval(&name, &parameters, &approved).await;
    match answer {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(Ok(())),
        Err(kube::Error::Api(status)) => Ok(Err(format!(
            "the API server rejects the approval: {}",
            status.message
        ))),
        Err(error) => Err(error).with_context(|| format!("could not approve {name}")),
    }
}

fn log_decision(decision_log: &ApprovalLog, request: &Request, status: Status, what: &str) {
    let kubelet_request = to_kubelet_request(request);
    let user = untrusted_excerpt(kubelet_request.user);
    let detail = format!("{} of {user}: {what}", request.name_any());
    let cause = (user, status == Status::Finished);
    decision_log.log_or_count(cause, status, kubelet_request.instance().ok(), &detail);
}
