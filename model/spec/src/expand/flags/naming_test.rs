//! Every naming exception names a field of the configuration: a misspelt one would never match.

use super::naming::Naming;
use super::{api_server, cloud_controller_manager, controller_manager, kubelet, proxy, scheduler};
use crate::api::cloud_controller_manager::CloudControllerManagerConfig;
use crate::api::kube_apiserver::KubeAPIServerConfig;
use crate::api::kube_controller_manager::{
    KubeControllerManagerConfig, LeaderElectionConfiguration,
};
use crate::api::kube_proxy::KubeProxyConfig;
use crate::api::kube_scheduler::KubeSchedulerConfig;
use crate::api::kubelet::KubeletConfigSpec;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Fields in `naming` that the configuration does not have.
fn unknown_fields<T: DeserializeOwned>(naming: &Naming) -> Vec<String> {
    let samples = [
        json!("text"),
        json!(1),
        json!(true),
        json!(["text"]),
        json!({ "key": "text" }),
        json!([{ "name": "text" }]),
        json!({}),
    ];
    let is_field = |field: &str| {
        let parse = |sample| serde_json::from_value::<T>(json!({ field: sample }));
        samples.iter().any(|sample| parse(sample).is_ok())
    };
    let named = naming.named.iter().map(|(field, _)| *field);
    let empty = naming.empty.iter().map(|(field, _)| *field);
    let lists = naming.none.iter().chain(naming.repeated).copied();
    let fields = named.chain(empty).chain(lists);
    fields
        .filter(|field| !is_field(field))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_exception_is_a_field() {
    let unknown = [
        unknown_fields::<CloudControllerManagerConfig>(&cloud_controller_manager::NAMING),
        unknown_fields::<KubeAPIServerConfig>(&api_server::NAMING),
        unknown_fields::<KubeControllerManagerConfig>(&controller_manager::NAMING),
        unknown_fields::<KubeProxyConfig>(&proxy::NAMING),
        unknown_fields::<KubeSchedulerConfig>(&scheduler::NAMING),
        unknown_fields::<KubeletConfigSpec>(&kubelet::NAMING),
        unknown_fields::<LeaderElectionConfiguration>(&scheduler::ELECTION),
    ];
    assert_eq!(unknown.concat(), Vec::<String>::new());
}
