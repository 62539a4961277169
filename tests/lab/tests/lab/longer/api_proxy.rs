//! Control planes crash, lose their network, hang and are replaced while a worker watches the API: for how long its watch stands still,
//! and that no worker is taken for lost. With a proxy of the API on every node, and without for comparison.

use super::super::cluster::{self, CONTROL_PLANES};
use super::super::{PATIENCE, faults::replaced};
use super::zone;
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::network::faults::Partition;
use lab::scenario::{Lab, unix_time};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// For how long a watch may stand still, in seconds.
const STILL: f64 = 10.0;

/// While the watch goes on, the last event was heard so long ago at most, in seconds.
const FRESH: f64 = 3.0;

/// The list of API servers on a worker.
const LIST: &str = "/var/lib/kctl/api-servers";

/// Where a control plane keeps what changes a Service five times a second, by its own API server.
const TICK: &str = "\
cd /run
umask 077
/opt/kctl/protokube admin-kubeconfig --valid 12h >ticks.kubeconfig
for part in certificate key; do
    /opt/kctl/tools/current/bin/kubectl --kubeconfig ticks.kubeconfig config view --raw \
        --output=jsonpath=\"{.users[0].user.client-$part-data}\" | base64 -d >ticks.$part
done
cat >ticks <<'END'
while :; do
    curl --silent --output /dev/null --max-time 2 --cacert /srv/kubernetes/ca.crt --cert ticks.certificate --key ticks.key \
        --request PATCH --header content-type:application/merge-patch+json \
        --data \"{\\\"metadata\\\":{\\\"annotations\\\":{\\\"tick\\\":\\\"$(date +%s.%N)\\\"}}}\" \
        https://127.0.0.1/api/v1/namespaces/default/services/ticks || :
    sleep 0.2
done
END
systemd-run --quiet --collect --unit=ticks --working-directory=/run sh ticks";

/// Where a worker watches that Service as kubelet's user, by the address in kubelet's file, and notes when it heard of each change.
/// kubectl ends with its watch, and begins another.
const WATCH: &str = "\
cat >/run/watch <<'END'
export HOME=/run
while :; do
    /opt/kctl/tools/current/bin/kubectl --kubeconfig /var/lib/kubelet/kubeconfig get service ticks --watch \
        --output=jsonpath='{.metadata.annotations.tick}{\"\\n\"}' || sleep 0.1
done | while read -r tick; do
    echo \"$(date +%s.%N) $tick\"
done >/run/watched
END
systemd-run --quiet --collect --unit=watch sh /run/watch";

/// What happens to a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// As in a power failure.
    Crashed,
    CutOff,
    /// Its API server takes connections, and says nothing.
    Hung,
}

const FAULTS: [(&str, Fault); 3] = [
    ("the control plane of the watch crashes", Fault::Crashed),
    ("it loses its network", Fault::CutOff),
    ("its API server hangs", Fault::Hung),
];

impl Fault {
    fn begin(self, lab: &Lab, host: &str) -> Result<()> {
        match self {
            Self::Crashed => lab.kill_host(host),
            Self::CutOff => lab.partition_host(&Partition::Host(host.to_owned())),
            Self::Hung => lab
                .run_script(host, "pkill -STOP -x kube-apiserver")
                .map(drop),
        }
    }

    fn end(self, lab: &Lab, host: &str) -> Result<()> {
        match self {
            Self::Crashed => lab.start_host(host),
            Self::CutOff => lab.heal_host(host),
            // kubelet may have ended it meanwhile.
            Self::Hung => lab
                .run_script(host, "pkill -CONT -x kube-apiserver || :")
                .map(drop),
        }
    }
}

/// A worker that watches, in a cluster whose nodes have a proxy or not.
struct Watcher {
    worker: Instance,
    proxied: bool,
}

/// From the creation of the cluster to its end. Without the proxy nothing is required: it prints figures.
pub fn run(lab: &mut Lab, proxied: bool) -> Result<()> {
    lab.run_step("a hosted zone", zone::make_public_zone)?;
    lab.run_step("kctl makes a cluster", |lab| make_cluster(lab, proxied))?;
    lab.run_step("five instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 3)
    })?;
    lab.run_step("kctl says that it is healthy", cluster::expect_healthy)?;
    let watcher = lab.run_step("a worker watches the API", |lab| {
        Watcher::start(lab, proxied)
    })?;
    let before = ready_since(lab)?;
    for (title, fault) in FAULTS {
        lab.run_step(title, |lab| watcher.outlast(lab, fault))?;
    }
    let old = addresses(lab)?;
    lab.run_step("every control plane is replaced", |lab| {
        watcher.outlast_replacements(lab)
    })?;
    if proxied {
        lab.run_step("a list of dead addresses recovers", |lab| {
            watcher.recover(lab, &old)
        })?;
    }
    let after = ready_since(lab)?;
    eprintln!("       workers are Ready since {before:?}, and in the end since {after:?}");
    ensure!(before == after || !proxied, "a worker was not Ready");
    lab.run_step(
        "kctl says again that it is healthy",
        cluster::expect_healthy,
    )
}

fn make_cluster(lab: &Lab, proxied: bool) -> Result<()> {
    let mut words = vec![
        "--dns=public",
        "--networking=flannel",
        // For the operator; nodes use the names of the control planes.
        "--api-loadbalancer-type=public",
        "--control-plane-zones=us-east-1a,us-east-1b,us-east-1c",
        "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1",
    ];
    if proxied {
        words.push("--set=spec.api.nodeProxy={}");
    }
    cluster::create_cluster(lab, &words)
}

/// The control planes' addresses.
fn addresses(lab: &Lab) -> Result<Vec<Ipv4Addr>> {
    let all = cluster::control_planes(lab, CONTROL_PLANES.len())?;
    Ok(all.into_iter().map(|one| one.address).collect())
}

impl Watcher {
    fn start(lab: &Lab, proxied: bool) -> Result<Self> {
        lab.run_kubectl(&["create", "service", "clusterip", "ticks", "--tcp=80"])?;
        let watcher = Self {
            worker: cluster::worker_instances(lab)?.remove(0),
            proxied,
        };
        tick_by(lab, &cluster::control_plane(lab, 0)?.id)?;
        lab.run_script(&watcher.worker.id, WATCH)?;
        watcher.goes_on(lab, 0.0)?;
        Ok(watcher)
    }

    /// Waits for an event that is fresh and younger than `since`, by a clock that all hosts share.
    fn goes_on(&self, lab: &Lab, since: f64) -> Result<()> {
        lab.wait_until("the watch goes on", PATIENCE, |lab| {
            let last = lab.run_script(&self.worker.id, "tail -n 1 /run/watched")?;
            let mut times = last.split(' ').map(str::parse::<f64>);
            let (heard, tick) = (
                times.next().context("no event")??,
                times.next().context("no tick")??,
            );
            ensure!(
                tick > since && unix_time()? - heard < FRESH,
                "since {since} only {last}"
            );
            Ok(())
        })
    }

    /// The longest time without an event since then.
    fn longest_gap(&self, lab: &Lab, since: f64) -> Result<f64> {
        let gap = format!(
            "awk -v last={since} '$1 > last {{ if ($1 - last > gap) gap = $1 - last; last = $1 }} END {{ print gap + 0 }}' /run/watched"
        );
        Ok(lab.run_script(&self.worker.id, &gap)?.parse()?)
    }

    /// The control plane that the watch is connected to: of all that the proxy has connections to, for its checks, the one with most.
    fn serving(&self, lab: &Lab) -> Result<Instance> {
        let program = if self.proxied { "nodeup" } else { "kubectl" };
        let peer = format!(
            "ss --no-header --numeric --tcp --processes state established '( dport = :443 )' | grep '\"{program}\"' | \
             awk '{{ print $4 }}' | sort | uniq -c | sort -rn | awk 'NR == 1 {{ print $2 }}'"
        );
        lab.wait_until("the watch is connected", PATIENCE, |lab| {
            let peer = lab.run_script(&self.worker.id, &peer)?;
            let all = cluster::control_planes(lab, CONTROL_PLANES.len())?;
            let mut all = all.into_iter();
            all.find(|one| peer == format!("{}:443", one.address))
                .with_context(|| format!("it is connected to {peer:?}"))
        })
    }

    /// A fault of the control plane that serves the watch.
    fn outlast(&self, lab: &mut Lab, fault: Fault) -> Result<()> {
        let host = self.serving(lab)?.id;
        let others = cluster::control_planes(lab, CONTROL_PLANES.len())?;
        let other = others.iter().find(|one| one.id != host);
        tick_by(lab, &other.context("another control plane")?.id)?;
        self.goes_on(lab, unix_time()?)?;
        let begun = unix_time()?;
        fault.begin(lab, &host)?;
        // Until then its events may still be on their way.
        self.goes_on(lab, begun + 2.0)?;
        let gap = self.longest_gap(lab, begun)?;
        eprintln!("       {fault:?}: the watch stood still for {gap:.1} s");
        fault.end(lab, &host)?;
        ensure!(gap <= STILL || !self.proxied, "{gap} s");
        lab.ready_again(&host, PATIENCE)?;
        cluster::expect_healthy(lab)
    }

    /// EC2 terminates every control plane, one after the other.
    fn outlast_replacements(&self, lab: &mut Lab) -> Result<()> {
        for group in 0..CONTROL_PLANES.len() {
            let old = cluster::control_plane(lab, group)?.id;
            let other = cluster::control_plane(lab, (group + 1) % CONTROL_PLANES.len())?.id;
            tick_by(lab, &other)?;
            self.goes_on(lab, unix_time()?)?;
            let begun = unix_time()?;
            lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": [old]}))?;
            let new = replaced::wait_for_replacement(lab, group, &old)?;
            cluster::becomes_ready(lab, &new.id)?;
            cluster::expect_healthy(lab)?;
            self.goes_on(lab, unix_time()?)?;
            let gap = self.longest_gap(lab, begun)?;
            eprintln!("       replaced: the watch stood still for {gap:.1} s at most");
            ensure!(gap <= STILL || !self.proxied, "{gap} s");
        }
        Ok(())
    }

    /// The proxy starts with addresses of control planes that are gone.
    fn recover(&self, lab: &Lab, dead: &[Ipv4Addr]) -> Result<()> {
        let now = addresses(lab)?;
        ensure!(
            dead.iter().all(|one| !now.contains(one)),
            "{dead:?}, {now:?}"
        );
        let lines: String = dead.iter().map(|one| format!("{one}:443\n")).collect();
        let unit = "kctl-api-proxy.service";
        let begun = unix_time()?;
        let restart =
            format!("systemctl stop {unit}; printf '{lines}' >{LIST}; systemctl start {unit}");
        lab.run_script(&self.worker.id, &restart)?;
        self.goes_on(lab, begun)?;
        let gap = self.longest_gap(lab, begun)?;
        eprintln!("       the watch stood still for {gap:.1} s");
        lab.wait_until("the list names the control planes", PATIENCE, |lab| {
            let list = lab.run_script(&self.worker.id, &format!("cat {LIST}"))?;
            let missing = now.iter().find(|one| !list.contains(&format!("{one}:443")));
            ensure!(
                missing.is_none() && list.lines().count() == now.len(),
                "{list}"
            );
            Ok(())
        })
    }
}

/// Since when each worker is Ready.
fn ready_since(lab: &Lab) -> Result<Vec<Value>> {
    let since = |worker: Instance| {
        let node = lab.get_objects(&["node", &worker.id])?;
        let conditions = node["status"]["conditions"].as_array();
        let mut conditions = conditions.context("conditions")?.iter();
        let ready = conditions.find(|one| one["type"] == "Ready");
        let ready = ready.context("nothing is said of Ready")?;
        ensure!(ready["status"] == "True", "{} is {ready}", worker.id);
        Ok(ready["lastTransitionTime"].clone())
    };
    cluster::worker_instances(lab)?
        .into_iter()
        .map(since)
        .collect()
}

/// From now on this control plane changes the Service, and no other.
fn tick_by(lab: &Lab, host: &str) -> Result<()> {
    for one in cluster::control_planes(lab, CONTROL_PLANES.len())? {
        lab.run_script(&one.id, "systemctl stop ticks.service 2>/dev/null || :")?;
    }
    lab.run_script(host, TICK).map(drop)
}
