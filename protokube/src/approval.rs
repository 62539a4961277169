//! Role approval: approves kubelets' serving certificates whose names and addresses EC2 confirms, and renewals of client
//! certificates of running instances. Other requests are left pending for other approvers, with a log line per Node.

use crate::limited_log::LimitedLog;
use crate::watch_events::{WATCH_SECONDS, wait_for_change};
use anyhow::Context;
use aws_client::ec2_query::{Ec2QueryClient, Instance};
use futures::StreamExt;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest as Request;
use kube::api::{ListParams, Patch, PatchParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{
    KubeletRequest, SeenInstance, check_client, check_instance, check_serving, untrusted_excerpt,
};
use node::report::Status;
use protokube_role::log::Log;
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
/// The signers whose requests are approved here.
const SIGNERS: [&str; 2] = [SERVING, CLIENT];
/// Requests on a page of a list. One may have more than a MiB.
const PAGE: u32 = 50;
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
    let mut approver = Approver {
        requests: Api::all(client),
        ec2,
        cluster,
        decision_log: ApprovalLog::new(log.clone(), STAGE, LOG_INTERVAL),
        left_alone: BTreeMap::new(),
    };
    loop {
        let begun = tokio::time::Instant::now();
        let mut pending = BTreeSet::new();
        let mut versions = BTreeMap::new();
        for signer in SIGNERS {
            let version = approver.approve_listed(signer, &mut pending).await?;
            versions.insert(signer, version);
        }
        approver.left_alone.retain(|name, _| pending.contains(name));
        approver.decision_log.log_counted();
        approver.wait_for_request(&versions).await?;
        tokio::time::sleep_until(begun + PACE).await;
    }
}

/// What the role works with.
struct Approver<'a> {
    requests: Api<Request>,
    ec2: Ec2QueryClient,
    cluster: &'a str,
    decision_log: ApprovalLog,
    /// Pending requests that were not approved, and when they were checked last.
    left_alone: BTreeMap<String, Instant>,
}

impl Approver<'_> {
    /// Approves the requests to a signer that EC2 confirms, page by page: a kubelet may create large ones without end. Adds the names
    /// of all pending ones. Returns the version of the list.
    async fn approve_listed(
        &mut self,
        signer: &str,
        pending: &mut BTreeSet<String>,
    ) -> anyhow::Result<String> {
        let selector = signer_selector(signer);
        let mut parameters = ListParams::default().fields(&selector).limit(PAGE);
        loop {
            let listed = self.requests.list(&parameters).await;
            let listed = listed.context("could not list certificate signing requests")?;
            let waiting: Vec<Request> = listed.items.into_iter().filter(is_pending).collect();
            pending.extend(waiting.iter().map(ResourceExt::name_any));
            self.approve_page(&waiting).await?;
            let next = listed.metadata.continue_;
            let Some(token) = next.filter(|token| !token.is_empty()) else {
                return Ok(listed.metadata.resource_version.unwrap_or_default());
            };
            parameters = parameters.continue_token(&token);
        }
    }

    /// Approves those of the pending requests whose turn it is.
    async fn approve_page(&mut self, pending: &[Request]) -> anyhow::Result<()> {
        let due = pending.iter().filter(|one| {
            let since = self.left_alone.get(&one.name_any());
            since.is_none_or(|since| since.elapsed() >= AGAIN)
        });
        let due: Vec<&Request> = due.collect();
        if due.is_empty() {
            return Ok(());
        }
        let begun = tokio::time::Instant::now();
        let log = &self.decision_log;
        let left = approve_due(&self.requests, &self.ec2, self.cluster, &due, log).await?;
        for (request, why) in left {
            let known = self.left_alone.insert(request.name_any(), Instant::now());
            if known.is_none() {
                let what = format!("not approved: {}", untrusted_excerpt(&why));
                log_decision(log, request, Status::Failed, &what);
            }
        }
        // Not before the next page either.
        tokio::time::sleep_until(begun + PACE).await;
        Ok(())
    }

    /// Waits for a request whose turn it is, or the end of the watches.
    async fn wait_for_request(&self, versions: &BTreeMap<&str, String>) -> anyhow::Result<()> {
        const CONTEXT: &str = "could not watch certificate signing requests";
        let mut watches = Vec::new();
        for (signer, version) in versions {
            let parameters = WatchParams::default().timeout(WATCH_SECONDS);
            let parameters = parameters.fields(&signer_selector(signer));
            let watch = self.requests.watch(&parameters, version).await;
            watches.push(watch.context(CONTEXT)?.boxed());
        }
        let matters =
            |one: &Request| is_pending(one) && !self.left_alone.contains_key(&one.name_any());
        let all = futures::stream::select_all(watches);
        wait_for_change(all, matters).await.context(CONTEXT)
    }
}

/// The selector of requests to a signer, so that those to others are not transferred.
fn signer_selector(signer: &str) -> String {
    format!("spec.signerName={signer}")
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
    if !SIGNERS.contains(&request.spec.signer_name.as_str()) {
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
