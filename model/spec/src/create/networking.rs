//! `--networking`.

use super::options::{CreateOptions, Topology};
use crate::api::amazon_vpc::AmazonVPCNetworkingSpec;
use crate::api::calico::CalicoNetworkingSpec;
use crate::api::cilium::CiliumNetworkingSpec;
use crate::api::cluster::ClusterSpec;
use crate::api::kindnet::KindnetNetworkingSpec;
use crate::api::kube_router::KuberouterNetworkingSpec;
use crate::api::networking::{
    CNINetworkingSpec, ExternalNetworkingSpec, FlannelNetworkingSpec, KubenetNetworkingSpec,
    NetworkingSpec,
};
use crate::read::Problem;

const FLAG: &str = "--networking";
const CHOICES: &str = "choose cilium, cilium-eni, flannel, flannel-udp, calico, amazonvpc, kube-router, kindnet, kubenet, cni or external; with \
                       cni you install a network plugin of your own";

pub(super) fn choose_plugin(
    options: &CreateOptions,
    spec: &mut ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let name = options.networking.as_deref().unwrap_or("cilium");
    let mut networking = NetworkingSpec::default();
    match name {
        "flannel" | "flannel-vxlan" => networking.flannel = Some(flannel_spec("vxlan")),
        "flannel-udp" => {
            let message = "flannel's UDP backend is slow; prefer flannel";
            problems.push(Problem::warning(FLAG, message).hint("pass --networking flannel"));
            networking.flannel = Some(flannel_spec("udp"));
        }
        // As in kOps, cilium replaces kube-proxy in a new cluster.
        "cilium" | "cilium-eni" => {
            let in_vpc = name == "cilium-eni";
            networking.cilium = Some(Box::new(CiliumNetworkingSpec {
                enable_node_port: Some(true),
                ipam: in_vpc.then(|| "eni".to_owned()),
                ..CiliumNetworkingSpec::default()
            }));
            spec.kube_proxy.get_or_insert_default().enabled = Some(false);
        }
        "calico" => networking.calico = Some(Box::new(CalicoNetworkingSpec::default())),
        // As in kOps, which requires it to be said.
        "kube-router" => {
            networking.kuberouter = Some(KuberouterNetworkingSpec::default());
            spec.kube_proxy.get_or_insert_default().enabled = Some(false);
        }
        // As in kOps, pods keep their addresses inside the VPC.
        "amazonvpc" | "amazon-vpc-routed-eni" => {
            networking.amazonvpc = Some(AmazonVPCNetworkingSpec::default());
            spec.non_masquerade_cidr.clone_from(&spec.network_cidr);
        }
        "kindnet" => networking.kindnet = Some(KindnetNetworkingSpec::default()),
        "cni" => networking.cni = Some(CNINetworkingSpec::default()),
        "external" => networking.external = Some(ExternalNetworkingSpec {}),
        "kubenet" => {
            if options.topology == Topology::Private {
                let message = "kubenet does not do a private topology";
                problems.push(Problem::error(FLAG, message).hint("use cilium or calico"));
            }
            networking.kubenet = Some(KubenetNetworkingSpec {});
        }
        other => problems.push(Problem::error(FLAG, refusal_text(other)).hint(CHOICES)),
    }
    spec.networking = Some(networking);
}

fn flannel_spec(backend: &str) -> FlannelNetworkingSpec {
    FlannelNetworkingSpec {
        backend: Some(backend.to_owned()),
        ..FlannelNetworkingSpec::default()
    }
}

fn refusal_text(name: &str) -> String {
    match name {
        "cilium-etcd" | "kopeio" | "kopeio-vxlan" => {
            format!("kctl does not install {name}")
        }
        "canal" | "classic" | "lyftvpc" | "romana" | "weave" => {
            format!("kOps removed {name}: the project is no longer maintained")
        }
        "gce" | "gcp" => format!("{name} is not for AWS"),
        _ => format!("there is no network plugin {name:?}"),
    }
}
