//! Charts among the user's objects: one that is given inline is installed, says why it fails, heals, and leaves with what it brought.

use super::super::PATIENCE;
use super::super::cluster::CLUSTER;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// The addon with the user's objects.
const ADDON: &str = "cluster-addons.kops.k8s.io";

/// The chart's one object, which refuses some values.
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {text: {{ .Values.text | quote }}}\n\
                        {{ if .Values.refuse }}{{ fail \"told to refuse\" }}{{ end }}\n";

/// The chart as base64 of its archive.
fn packed_chart(lab: &Lab) -> Result<String> {
    let folder = lab.place().run().join("chart/greeter");
    fs::create_dir_all(folder.join("templates"))?;
    fs::write(
        folder.join("Chart.yaml"),
        "apiVersion: v2\nname: greeter\nversion: 1.0.0\n",
    )?;
    fs::write(folder.join("values.yaml"), "text: nothing\n")?;
    fs::write(folder.join("templates/greeting.yaml"), TEMPLATE)?;
    let pack = "tar --create --gzip --directory \"$1\" greeter | base64 --wrap=0";
    let parent = folder.parent().context("a folder")?;
    let packed = Command::new("sh")
        .args(["-ec", pack, "pack"])
        .arg(parent)
        .output()?;
    ensure!(packed.status.success(), "{packed:?}");
    Ok(String::from_utf8(packed.stdout)?)
}

/// Stores the chart with these values, and updates the cluster.
fn store_chart(lab: &Lab, command: &str, values: &str) -> Result<()> {
    let chart = json!({
        "apiVersion": "helm.cattle.io/v1",
        "kind": "HelmChart",
        "metadata": {"name": "greeter", "namespace": "default"},
        "spec": {
            "chartContent": packed_chart(lab)?,
            "targetNamespace": "shop",
            "createNamespace": true,
            "valuesContent": values,
        },
    });
    let file = lab.place().run().join("chart.yaml");
    fs::write(&file, chart.to_string())?;
    let file = file.display().to_string();
    lab.run_kctl(&[command, "-f", &file, "--name", CLUSTER])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    Ok(())
}

/// What `kctl get addons` says of the user's objects.
fn addon_status(lab: &Lab) -> Result<Value> {
    let shown = lab.run_kctl(&["get", "addons", CLUSTER, "-o", "json"])?;
    let all: Vec<Value> = serde_json::from_str(&shown)?;
    let found = all.into_iter().find(|addon| addon["name"] == ADDON);
    found.with_context(|| format!("no {ADDON}: {shown}"))
}

fn expect_greeting(lab: &mut Lab, text: &str) -> Result<()> {
    lab.wait_until("the chart is installed", PATIENCE, |lab| {
        let said = lab.run_kubectl(&[
            "get",
            "configmap",
            "greeting",
            "--namespace=shop",
            "--output=jsonpath={.data.text}",
        ])?;
        ensure!(said.trim() == text, "{said}");
        let status = addon_status(lab)?;
        ensure!(status["state"] == "healthy", "{status}");
        Ok(())
    })
}

pub fn install(lab: &mut Lab) -> Result<()> {
    store_chart(lab, "create", "text: hello\n")?;
    expect_greeting(lab, "hello")
}

pub fn spoil(lab: &mut Lab) -> Result<()> {
    store_chart(lab, "replace", "text: hello\nrefuse: true\n")?;
    lab.wait_until("the chart says why it fails", PATIENCE, |lab| {
        let status = addon_status(lab)?;
        let problems = status["problems"].to_string();
        ensure!(status["state"] == "unhealthy", "{status}");
        ensure!(problems.contains("told to refuse"), "{status}");
        Ok(())
    })
}

pub fn mend(lab: &mut Lab) -> Result<()> {
    store_chart(lab, "replace", "text: moin\n")?;
    expect_greeting(lab, "moin")
}

pub fn remove(lab: &mut Lab) -> Result<()> {
    let words = [
        "delete",
        "object",
        "HelmChart",
        "greeter",
        "--name",
        CLUSTER,
        "--yes",
    ];
    lab.run_kctl(&words)?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    lab.wait_until("nothing of the chart is left", PATIENCE, |lab| {
        for (object, namespace) in [
            ("configmap/greeting", "--namespace=shop"),
            ("deployment/helm-controller", "--namespace=kube-system"),
        ] {
            let words = [
                "get",
                object,
                namespace,
                "--ignore-not-found",
                "--output=name",
            ];
            let left = lab.run_kubectl(&words)?;
            ensure!(left.trim().is_empty(), "{left}");
        }
        Ok(())
    })
}
