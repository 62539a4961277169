//! The cluster from outside: an administrator's kubectl, what runs in every cluster, nodes.

use super::machines::{API, CLUSTER_PODS, Machines};
use super::{Cluster, PATIENCE, content};
use anyhow::{Context, Result, bail, ensure};
use lab::content::Served;
use lab::scenario::Lab;
use model::pki::{
    ClientCredentials, Kubeconfig, Leaf, SystemKeys, Usage, issue, kubeconfig, trust_bundle,
};
use serde_json::Value;
use std::fmt::Write;
use std::time::Instant;

const ADDONS: &str = include_str!("addons.yaml");

/// As EC2 names the machines.
pub struct Nodes {
    pub control: String,
    pub worker: String,
}

/// Makes an administrator's kubeconfig, with the API's public address, and waits until the API answers.
pub fn admin(lab: &Lab, machines: &Machines) -> Result<Nodes> {
    let (control, worker) = (
        lab.instance(&machines.control)?,
        lab.instance(&machines.worker)?,
    );
    let address = control.public_address.context("a public address")?;
    let leaf = Leaf {
        common_name: "admin".to_owned(),
        organization: Some("system:masters".to_owned()),
        usage: Usage::Client,
        names: Vec::new(),
        validity: time::Duration::DAY,
    };
    let mut keys = SystemKeys::at(time::OffsetDateTime::now_utc());
    let issued = issue(&machines.authority, &leaf, &mut keys)?;
    let text = kubeconfig(&Kubeconfig {
        name: "by-hand".to_owned(),
        server: format!("https://{address}:6443"),
        tls_server_name: None,
        trust_bundle: Some(trust_bundle(&machines.authority)),
        credentials: Some(ClientCredentials::Inside {
            certificate: issued.certificate,
            key: issued.key,
        }),
    })?;
    std::fs::write(lab.place().run().join("kubeconfig"), text.reveal())?;
    lab.until("the API is ready", PATIENCE, |lab| {
        let said = lab.kubectl(&["get", "--raw=/readyz"])?;
        ensure!(said == "ok", "it says {said}");
        Ok(())
    })?;
    Ok(Nodes {
        control: control.hostname,
        worker: worker.hostname,
    })
}

/// Applies what every cluster runs and waits for both nodes; how long after the launch things were.
pub fn ready(lab: &Lab, nodes: &Nodes, served: &Served, launch: Instant) -> Result<String> {
    let mut figures = format!(
        "seconds from launch: API ready {:.0}",
        launch.elapsed().as_secs_f64()
    );
    let mut addons = ADDONS.to_owned();
    for (word, value) in [
        ("@API@", API.to_owned()),
        ("@CONTROL_PLANE@", nodes.control.clone()),
        ("@CLUSTER_PODS@", CLUSTER_PODS.to_owned()),
        (
            "@PROXY@",
            content::image(served, "registry.k8s.io/kube-proxy")?,
        ),
        (
            "@DNS@",
            content::image(served, "registry.k8s.io/coredns/coredns")?,
        ),
        (
            "@CLOUD@",
            content::image(
                served,
                "registry.k8s.io/provider-aws/cloud-controller-manager",
            )?,
        ),
    ] {
        addons = addons.replace(word, &value);
    }
    let file = lab.place().run().join("addons.yaml");
    std::fs::write(&file, addons)?;
    lab.kubectl(&["apply", "--filename", &file.display().to_string()])?;
    for (what, name) in [("control plane", &nodes.control), ("worker", &nodes.worker)] {
        lab.until(&format!("{name} is Ready"), PATIENCE, |lab| {
            is_ready(lab, name)
        })?;
        write!(
            figures,
            ", {what} Ready {:.0}",
            launch.elapsed().as_secs_f64()
        )?;
    }
    Ok(figures)
}

fn is_ready(lab: &Lab, name: &str) -> Result<()> {
    let node = lab.objects(&["node", name])?;
    let conditions = node["status"]["conditions"]
        .as_array()
        .context("conditions")?;
    for condition in conditions {
        let good = if condition["type"] == "Ready" {
            "True"
        } else {
            "False"
        };
        if condition["status"] != good {
            bail!("{condition}");
        }
    }
    Ok(())
}

/// The cloud controller manager has looked each up in EC2, with the role of the control plane.
pub fn known_to_the_cloud(lab: &Lab, cluster: &Cluster) -> Result<()> {
    let Cluster {
        nodes, machines, ..
    } = cluster;
    for (name, id) in [
        (&nodes.control, &machines.control),
        (&nodes.worker, &machines.worker),
    ] {
        let instance = lab.instance(id)?;
        lab.until(&format!("{name} is initialized"), PATIENCE, |lab| {
            let node = lab.objects(&["node", name])?;
            let spec = &node["spec"];
            ensure!(
                spec["taints"].is_null(),
                "it has the taints {}",
                spec["taints"]
            );
            ensure!(
                spec["providerID"] == format!("aws:///{}/{id}", instance.zone),
                "{spec}"
            );
            let labels = &node["metadata"]["labels"];
            ensure!(
                labels["topology.kubernetes.io/zone"] == instance.zone,
                "{labels}"
            );
            ensure!(
                labels["node.kubernetes.io/instance-type"] == instance.instance_type,
                "{labels}"
            );
            let addresses = node["status"]["addresses"]
                .as_array()
                .context("addresses")?;
            let public = instance
                .public_address
                .context("a public address")?
                .to_string();
            let external = |one: &Value| one["type"] == "ExternalIP" && one["address"] == public;
            ensure!(addresses.iter().any(external), "{addresses:?}");
            Ok(())
        })?;
    }
    Ok(())
}
