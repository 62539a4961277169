//! The controls of the benchmark: number, kctl's short title, whether the benchmark assesses it automatically, and what is looked at.

use super::components::Want;
use super::node_files::{FileWant, look_at_files, look_at_values};
use super::seen::Seen;
use super::{CisObserved, PodAdmission};
use Check::{
    ApiServer, By, ControlPlaneFile, ControlPlaneFileIfAny, ControlPlaneValue, ControllerManager,
    Etcd, Kubelet, Look, NodeFile, NodeFileIfAny, Proxy, Scheduler,
};
use FileWant::{Mode, Owner};
use Want::{Has, Is, Lacks, Least, Not, Only, Set, Unset, UnsetOr, UnsetOrOn, Without};
use node::cipher_suites::STRONG_CIPHER_SUITES;

pub(super) struct Control {
    pub(super) number: &'static str,
    pub(super) title: &'static str,
    pub(super) automated: bool,
    pub(super) check: Check,
}

/// What is looked at. Flags and variables of several names all have to be as wanted.
pub(super) enum Check {
    ApiServer(&'static [&'static str], Want),
    ControllerManager(&'static [&'static str], Want),
    Scheduler(&'static [&'static str], Want),
    Proxy(&'static str, Want),
    /// Variables of etcd's environment.
    Etcd(&'static [&'static str], Want),
    /// A field of KubeletConfiguration.
    Kubelet(&'static str, Want),
    /// A file on control planes.
    ControlPlaneFile(&'static str, FileWant),
    ControlPlaneFileIfAny(&'static str, FileWant),
    /// A file on all nodes.
    NodeFile(&'static str, FileWant),
    NodeFileIfAny(&'static str, FileWant),
    /// A setting in a file of control planes.
    ControlPlaneValue(&'static str, Want),
    By(fn(&CisObserved) -> Vec<Seen>),
    /// Nothing: this is what a person has to look at.
    Look(&'static str),
}

impl Check {
    pub(super) fn look(&self, of: &CisObserved) -> Vec<Seen> {
        match self {
            ApiServer(flags, want) => of.flags("kube-apiserver", flags, *want),
            ControllerManager(flags, want) => of.flags("kube-controller-manager", flags, *want),
            Scheduler(flags, want) => of.flags("kube-scheduler", flags, *want),
            Proxy(flag, want) => of.proxy_flag(flag, *want),
            Etcd(variables, want) => of.etcd(variables, *want),
            Kubelet(field, want) => of.kubelet(field, *want),
            ControlPlaneFile(what, want) => look_at_files(of.control_planes(), what, *want, false),
            ControlPlaneFileIfAny(what, want) => {
                look_at_files(of.control_planes(), what, *want, true)
            }
            NodeFile(what, want) => look_at_files(of.nodes.iter(), what, *want, false),
            NodeFileIfAny(what, want) => look_at_files(of.nodes.iter(), what, *want, true),
            ControlPlaneValue(what, want) => look_at_values(of.control_planes(), what, *want),
            By(look) => look(of),
            Look(at) => vec![Seen::unseen("", at)],
        }
    }
}

const AUTOMATED: bool = true;
const MANUAL: bool = false;

const ROOT: FileWant = Owner("root:root");

const PROVIDERS: &[&str] = &["aescbc", "kms", "secretbox"];

const BASELINE: PodAdmission = PodAdmission::Baseline;
const RESTRICTED: PodAdmission = PodAdmission::Restricted;

const fn control(
    number: &'static str,
    automated: bool,
    title: &'static str,
    check: Check,
) -> Control {
    Control {
        number,
        title,
        automated,
        check,
    }
}

#[rustfmt::skip] // One line for each control.
pub(super) const CONTROLS: &[Control] = &[
    control("1.1.1", AUTOMATED, "mode of the API server's manifest", ControlPlaneFile("manifest-kube-apiserver", Mode(0o600))),
    control("1.1.2", AUTOMATED, "owner of the API server's manifest", ControlPlaneFile("manifest-kube-apiserver", ROOT)),
    control("1.1.3", AUTOMATED, "mode of the controller manager's manifest", ControlPlaneFile("manifest-kube-controller-manager", Mode(0o600))),
    control("1.1.4", AUTOMATED, "owner of the controller manager's manifest", ControlPlaneFile("manifest-kube-controller-manager", ROOT)),
    control("1.1.5", AUTOMATED, "mode of the scheduler's manifest", ControlPlaneFile("manifest-kube-scheduler", Mode(0o600))),
    control("1.1.6", AUTOMATED, "owner of the scheduler's manifest", ControlPlaneFile("manifest-kube-scheduler", ROOT)),
    control("1.1.7", AUTOMATED, "mode of etcd's manifests", ControlPlaneFile("manifest-etcd", Mode(0o600))),
    control("1.1.8", AUTOMATED, "owner of etcd's manifests", ControlPlaneFile("manifest-etcd", ROOT)),
    control("1.1.9", MANUAL, "mode of the CNI configuration", ControlPlaneFileIfAny("cni", Mode(0o600))),
    control("1.1.10", MANUAL, "owner of the CNI configuration", ControlPlaneFileIfAny("cni", ROOT)),
    control("1.1.11", AUTOMATED, "mode of etcd's data folders", ControlPlaneFile("etcd-data", Mode(0o700))),
    control("1.1.12", AUTOMATED, "owner of etcd's data folders", ControlPlaneFile("etcd-data", Owner("etcd:etcd"))),
    control("1.1.13", AUTOMATED, "mode of administrators' kubeconfigs", ControlPlaneFileIfAny("admin-kubeconfig", Mode(0o600))),
    control("1.1.14", AUTOMATED, "owner of administrators' kubeconfigs", ControlPlaneFileIfAny("admin-kubeconfig", ROOT)),
    control("1.1.15", AUTOMATED, "mode of the scheduler's kubeconfig", ControlPlaneFile("kubeconfig-kube-scheduler", Mode(0o600))),
    control("1.1.16", AUTOMATED, "owner of the scheduler's kubeconfig", ControlPlaneFile("kubeconfig-kube-scheduler", ROOT)),
    control("1.1.17", AUTOMATED, "mode of the controller manager's kubeconfig", ControlPlaneFile("kubeconfig-kube-controller-manager", Mode(0o600))),
    control("1.1.18", AUTOMATED, "owner of the controller manager's kubeconfig", ControlPlaneFile("kubeconfig-kube-controller-manager", ROOT)),
    control("1.1.19", AUTOMATED, "owner of keys and certificates", ControlPlaneFile("pki", ROOT)),
    control("1.1.20", MANUAL, "mode of certificates", ControlPlaneFile("pki-certificate", Mode(0o644))),
    control("1.1.21", MANUAL, "mode of keys", ControlPlaneFile("pki-key", Mode(0o600))),
    control("1.2.1", MANUAL, "API server: no anonymous requests", ApiServer(&["anonymous-auth"], Is("false"))),
    control("1.2.2", AUTOMATED, "API server: no file with tokens", ApiServer(&["token-auth-file"], Unset)),
    control("1.2.3", MANUAL, "API server: no external IPs of Services", ApiServer(&["enable-admission-plugins"], Has("DenyServiceExternalIPs"))),
    control("1.2.4", AUTOMATED, "API server: certificate for kubelets", ApiServer(&["kubelet-client-certificate", "kubelet-client-key"], Set)),
    control("1.2.5", AUTOMATED, "API server: kubelets are verified", ApiServer(&["kubelet-certificate-authority"], Set)),
    control("1.2.6", AUTOMATED, "API server: not everything is allowed", ApiServer(&["authorization-mode"], Without("AlwaysAllow"))),
    control("1.2.7", AUTOMATED, "API server: authorization of Nodes", ApiServer(&["authorization-mode"], Has("Node"))),
    control("1.2.8", AUTOMATED, "API server: RBAC", ApiServer(&["authorization-mode"], Has("RBAC"))),
    control("1.2.9", MANUAL, "API server: limits of events", ApiServer(&["enable-admission-plugins"], Has("EventRateLimit"))),
    control("1.2.10", AUTOMATED, "API server: AlwaysAdmit is off", ApiServer(&["enable-admission-plugins"], Lacks("AlwaysAdmit"))),
    control("1.2.11", MANUAL, "API server: images are always pulled", ApiServer(&["enable-admission-plugins"], Has("AlwaysPullImages"))),
    control("1.2.12", AUTOMATED, "API server: ServiceAccount is on", ApiServer(&["disable-admission-plugins"], Lacks("ServiceAccount"))),
    control("1.2.13", AUTOMATED, "API server: NamespaceLifecycle is on", ApiServer(&["disable-admission-plugins"], Lacks("NamespaceLifecycle"))),
    control("1.2.14", AUTOMATED, "API server: NodeRestriction is on", ApiServer(&["enable-admission-plugins"], Has("NodeRestriction"))),
    control("1.2.15", AUTOMATED, "API server: no profiles", ApiServer(&["profiling"], Is("false"))),
    control("1.2.16", AUTOMATED, "API server: audit log", ApiServer(&["audit-log-path"], Set)),
    control("1.2.17", AUTOMATED, "API server: age of audit logs", ApiServer(&["audit-log-maxage"], Least(30))),
    control("1.2.18", AUTOMATED, "API server: number of audit logs", ApiServer(&["audit-log-maxbackup"], Least(10))),
    control("1.2.19", AUTOMATED, "API server: size of audit logs", ApiServer(&["audit-log-maxsize"], Least(100))),
    control("1.2.20", MANUAL, "API server: time of requests", ApiServer(&["request-timeout"], UnsetOr("1m0s"))),
    control("1.2.21", AUTOMATED, "API server: service accounts are looked up", ApiServer(&["service-account-lookup"], UnsetOr("true"))),
    control("1.2.22", AUTOMATED, "API server: keys of service accounts", ApiServer(&["service-account-key-file"], Set)),
    control("1.2.23", AUTOMATED, "API server: certificate for etcd", ApiServer(&["etcd-certfile", "etcd-keyfile"], Set)),
    control("1.2.24", AUTOMATED, "API server: its own certificate", ApiServer(&["tls-cert-file", "tls-private-key-file"], Set)),
    control("1.2.25", AUTOMATED, "API server: authority of clients", ApiServer(&["client-ca-file"], Set)),
    control("1.2.26", AUTOMATED, "API server: authority of etcd", ApiServer(&["etcd-cafile"], Set)),
    control("1.2.27", MANUAL, "API server: encryption in etcd", ApiServer(&["encryption-provider-config"], Set)),
    control("1.2.28", MANUAL, "API server: how it encrypts", ControlPlaneValue("encryption-provider", Only(PROVIDERS))),
    control("1.2.29", MANUAL, "API server: strong cipher suites", ApiServer(&["tls-cipher-suites"], Only(STRONG_CIPHER_SUITES))),
    control("1.2.30", AUTOMATED, "API server: tokens are not extended", ApiServer(&["service-account-extend-token-expiration"], Is("false"))),
    control("1.3.1", MANUAL, "controller manager: ended pods are removed", ControllerManager(&["terminated-pod-gc-threshold"], Set)),
    control("1.3.2", AUTOMATED, "controller manager: no profiles", ControllerManager(&["profiling"], Is("false"))),
    control("1.3.3", AUTOMATED, "controller manager: an account for each controller", ControllerManager(&["use-service-account-credentials"], Is("true"))),
    control("1.3.4", AUTOMATED, "controller manager: key of service accounts", ControllerManager(&["service-account-private-key-file"], Set)),
    control("1.3.5", AUTOMATED, "controller manager: authority for pods", ControllerManager(&["root-ca-file"], Set)),
    control("1.3.6", AUTOMATED, "controller manager: kubelets' certificates are renewed", ControllerManager(&["feature-gates"], Lacks("RotateKubeletServerCertificate=false"))),
    control("1.3.7", AUTOMATED, "controller manager: listens on loopback", ControllerManager(&["bind-address"], Is("127.0.0.1"))),
    control("1.4.1", AUTOMATED, "scheduler: no profiles", ControlPlaneValue("scheduler-profiling", Is("false"))),
    control("1.4.2", AUTOMATED, "scheduler: listens on loopback", Scheduler(&["bind-address"], Is("127.0.0.1"))),
    control("2.1", AUTOMATED, "etcd: certificate for clients", Etcd(&["ETCD_CERT_FILE", "ETCD_KEY_FILE"], Set)),
    control("2.2", AUTOMATED, "etcd: clients have certificates", Etcd(&["ETCD_CLIENT_CERT_AUTH"], Is("true"))),
    control("2.3", AUTOMATED, "etcd: no certificates of its own making for clients", Etcd(&["ETCD_AUTO_TLS"], UnsetOr("false"))),
    control("2.4", AUTOMATED, "etcd: certificate for members", Etcd(&["ETCD_PEER_CERT_FILE", "ETCD_PEER_KEY_FILE"], Set)),
    control("2.5", AUTOMATED, "etcd: members have certificates", Etcd(&["ETCD_PEER_CLIENT_CERT_AUTH"], Is("true"))),
    control("2.6", AUTOMATED, "etcd: no certificates of its own making for members", Etcd(&["ETCD_PEER_AUTO_TLS"], UnsetOr("false"))),
    control("2.7", MANUAL, "etcd: an authority of its own", ControlPlaneValue("etcd-authority", Is("own"))),
    control("3.1.1", MANUAL, "no client certificates of people", Look("who runs `kctl export kubeconfig`: it issues a certificate; people may use OIDC or IAM (spec.authentication.aws) instead")),
    control("3.1.2", MANUAL, "no service account tokens of people", Look("who has tokens of service accounts outside the cluster")),
    control("3.1.3", MANUAL, "no bootstrap tokens of people", ApiServer(&["enable-bootstrap-token-auth"], UnsetOr("false"))),
    control("3.2.1", MANUAL, "an audit policy", ApiServer(&["audit-policy-file"], Set)),
    control("3.2.2", MANUAL, "what the audit policy covers", Look("the policy in spec.kubeAPIServer.auditPolicyFile: Secrets, pods, exec, port-forward, proxies, certificates, tokens")),
    control("4.1.1", AUTOMATED, "mode of kubelet's unit", NodeFile("kubelet-unit", Mode(0o600))),
    control("4.1.2", AUTOMATED, "owner of kubelet's unit", NodeFile("kubelet-unit", ROOT)),
    control("4.1.3", MANUAL, "mode of kube-proxy's kubeconfig", NodeFileIfAny("kubeconfig-kube-proxy", Mode(0o600))),
    control("4.1.4", MANUAL, "owner of kube-proxy's kubeconfig", NodeFileIfAny("kubeconfig-kube-proxy", ROOT)),
    control("4.1.5", AUTOMATED, "mode of kubelet's kubeconfig", NodeFile("kubeconfig-kubelet", Mode(0o600))),
    control("4.1.6", AUTOMATED, "owner of kubelet's kubeconfig", NodeFile("kubeconfig-kubelet", ROOT)),
    control("4.1.7", MANUAL, "mode of the authority of kubelet's clients", NodeFile("client-ca", Mode(0o644))),
    control("4.1.8", MANUAL, "owner of the authority of kubelet's clients", NodeFile("client-ca", ROOT)),
    control("4.1.9", AUTOMATED, "mode of kubelet's configuration", NodeFile("kubelet-config", Mode(0o600))),
    control("4.1.10", AUTOMATED, "owner of kubelet's configuration", NodeFile("kubelet-config", ROOT)),
    control("4.2.1", AUTOMATED, "kubelet: no anonymous requests", Kubelet("/authentication/anonymous/enabled", Is("false"))),
    control("4.2.2", AUTOMATED, "kubelet: not everything is allowed", Kubelet("/authorization/mode", Not("AlwaysAllow"))),
    control("4.2.3", AUTOMATED, "kubelet: authority of clients", Kubelet("/authentication/x509/clientCAFile", Set)),
    control("4.2.4", MANUAL, "kubelet: no port without authentication", Kubelet("/readOnlyPort", UnsetOr("0"))),
    control("4.2.5", MANUAL, "kubelet: idle connections end", Kubelet("/streamingConnectionIdleTimeout", Not("0s"))),
    control("4.2.6", AUTOMATED, "kubelet: its chains of iptables", Kubelet("/makeIPTablesUtilChains", UnsetOr("true"))),
    control("4.2.7", MANUAL, "kubelet: no other name of the host", Look("--hostname-override in /etc/sysconfig/kubelet: kctl names each Node by its instance, as the certificates do")),
    control("4.2.8", MANUAL, "kubelet: events are captured", Kubelet("/eventRecordQPS", Least(0))),
    control("4.2.9", MANUAL, "kubelet: its own certificate", Kubelet("/serverTLSBootstrap", Is("true"))),
    control("4.2.10", AUTOMATED, "kubelet: client certificate is renewed", Kubelet("/rotateCertificates", Is("true"))),
    control("4.2.11", MANUAL, "kubelet: own certificate is renewed", Kubelet("/featureGates/RotateKubeletServerCertificate", UnsetOr("true"))),
    control("4.2.12", MANUAL, "kubelet: strong cipher suites", Kubelet("/tlsCipherSuites", Only(STRONG_CIPHER_SUITES))),
    control("4.2.13", MANUAL, "kubelet: processes of pods are limited", Kubelet("/podPidsLimit", Least(1))),
    control("4.2.14", MANUAL, "kubelet: seccomp by default", Kubelet("/seccompDefault", Is("true"))),
    control("4.3.1", AUTOMATED, "kube-proxy: metrics on loopback", Proxy("metrics-bind-address", UnsetOrOn("127.0.0.1:"))),
    control("5.1.1", MANUAL, "cluster-admin only where needed", By(CisObserved::cluster_admins)),
    control("5.1.2", MANUAL, "few may read Secrets", By(|of| of.who_may(&["get", "list", "watch"], &["secrets"]))),
    control("5.1.3", MANUAL, "few roles have *", By(CisObserved::wildcards)),
    control("5.1.4", MANUAL, "few may create pods", By(|of| of.who_may(&["create"], &["pods"]))),
    control("5.1.5", MANUAL, "default service accounts are not used", By(CisObserved::default_accounts)),
    control("5.1.6", MANUAL, "tokens only in pods that need them", Look("pods without automountServiceAccountToken: false that call no API")),
    control("5.1.7", MANUAL, "system:masters is avoided", Look("who may read the keyset kubernetes-ca in the state store: `kctl export kubeconfig` issues certificates of this group")),
    control("5.1.8", MANUAL, "few may bind, impersonate or escalate", By(|of| of.who_may(&["bind", "impersonate", "escalate"], &["*"]))),
    control("5.1.9", MANUAL, "few may create PersistentVolumes", By(|of| of.who_may(&["create"], &["persistentvolumes"]))),
    control("5.1.10", MANUAL, "few may use the proxy of Nodes", By(|of| of.who_may(&["*"], &["nodes/proxy"]))),
    control("5.1.11", MANUAL, "few may approve certificates", By(|of| of.who_may(&["update", "patch"], &["certificatesigningrequests/approval"]))),
    control("5.1.12", MANUAL, "few may change webhooks", By(|of| of.who_may(&["create", "update", "patch", "delete"], &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]))),
    control("5.1.13", MANUAL, "few may create tokens", By(|of| of.who_may(&["create"], &["serviceaccounts/token"]))),
    control("5.2.1", MANUAL, "namespaces have a policy for pods", By(|of| of.admits_only(&BASELINE))),
    control("5.2.2", MANUAL, "no privileged containers", By(|of| of.admits_only(&BASELINE))),
    control("5.2.3", MANUAL, "no processes of the host", By(|of| of.admits_only(&BASELINE))),
    control("5.2.4", MANUAL, "no IPC of the host", By(|of| of.admits_only(&BASELINE))),
    control("5.2.5", MANUAL, "no network of the host", By(|of| of.admits_only(&BASELINE))),
    control("5.2.6", MANUAL, "no further privileges", By(|of| of.admits_only(&RESTRICTED))),
    control("5.2.7", MANUAL, "no root in containers", By(|of| of.admits_only(&RESTRICTED))),
    control("5.2.8", MANUAL, "no NET_RAW", By(|of| of.admits_only(&RESTRICTED))),
    control("5.2.9", MANUAL, "no capabilities", By(|of| of.admits_only(&RESTRICTED))),
    control("5.2.10", MANUAL, "no processes of Windows hosts", By(|of| of.admits_only(&BASELINE))),
    control("5.2.11", MANUAL, "no paths of the host", By(|of| of.admits_only(&BASELINE))),
    control("5.2.12", MANUAL, "no ports of the host", By(|of| of.admits_only(&BASELINE))),
    control("5.3.1", MANUAL, "the network plugin enforces policies", Look("which network plugin runs: calico, cilium, kindnet and kube-router enforce NetworkPolicies")),
    control("5.3.2", MANUAL, "namespaces have NetworkPolicies", By(CisObserved::network_policies)),
    control("5.4.1", MANUAL, "Secrets are files, not variables", Look("pods with secretKeyRef or secretRef in the environment of a container")),
    control("5.4.2", MANUAL, "Secrets outside the cluster", Look("whether Secrets belong into AWS Secrets Manager or another store")),
    control("5.5.1", MANUAL, "provenance of images", ApiServer(&["enable-admission-plugins"], Has("ImagePolicyWebhook"))),
    control("5.6.1", MANUAL, "namespaces divide what is not of one hand", Look("which teams and applications share a namespace")),
    control("5.6.2", MANUAL, "pods name a seccomp profile", Look("pods without seccompProfile in a securityContext; with kubelet's seccompDefault they have that of the runtime")),
    control("5.6.3", MANUAL, "pods have security contexts", Look("the securityContext of your pods and containers")),
    control("5.6.4", MANUAL, "the namespace default is not used", Look("kubectl get all --namespace default")),
];
