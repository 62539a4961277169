//! From `kctl update --yes` to nodeup.

use super::{CLUSTER, CONTROL_PLANES, WORKERS, only};
use anyhow::{Result, ensure};
use base64::Engine;
use lab::scenario::{Lab, Stage};
use serde_json::json;

pub fn make(lab: &mut Lab) -> Result<()> {
    lab.store()?;
    let words = [
        "--zones",
        "us-east-1a,us-east-1b",
        "--control-plane-zones",
        "us-east-1a,us-east-1b,us-east-1c",
        "--node-count",
        "2",
    ];
    lab.create(CLUSTER, &words)?;
    lab.kctl(&["update", CLUSTER, "--yes"]).map(drop)
}

pub fn hosts_run_user_data(lab: &mut Lab) -> Result<()> {
    for group in CONTROL_PLANES.iter().chain(&WORKERS) {
        let host = only(lab, group)?;
        let stages = lab.stage(&host.id, "nodeup identify finished")?;
        let words: Vec<String> = stages.iter().map(Stage::words).collect();
        // nodeup is started without waiting for it, so only user data's own order is sure.
        let own: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .filter(|words| words.starts_with("user-data"))
            .collect();
        let whole = [
            "user-data fetch started",
            "user-data fetch finished",
            "user-data start finished",
        ];
        ensure!(
            whole.starts_with(&own) && own.len() > 1,
            "{} said {words:?}",
            host.id
        );
        lab.stage(&host.id, "user-data start finished")?;
    }
    for group in CONTROL_PLANES {
        // They read it from the store with their role.
        lab.stage(&only(lab, group)?.id, "nodeup fetch finished")?;
    }
    Ok(())
}

/// What AWS has as user data of a group's newest launch template.
pub fn template(lab: &Lab, group: &str) -> Result<String> {
    let asked = json!({"LaunchTemplateName": group, "Versions": ["$Latest"]});
    let told = lab.aws("ec2", "DescribeLaunchTemplateVersions", &asked)?;
    let text = told["LaunchTemplateVersions"][0]["LaunchTemplateData"]["UserData"].as_str();
    let text = base64::engine::general_purpose::STANDARD.decode(text.unwrap())?;
    Ok(String::from_utf8(text)?)
}

/// What cloud-init has of it in a host.
pub fn in_host(lab: &Lab, id: &str) -> Result<String> {
    lab.exec(id, &["cat", "/var/lib/cloud/instance/user-data.txt"])
}

/// cloud-init asked EC2 before the network was up, with an address of its own by DHCP, as it does on EC2; what it falls back
/// to works as well, later.
pub fn cloud_init_found_ec2(lab: &mut Lab) -> Result<()> {
    for group in CONTROL_PLANES.iter().chain(&WORKERS) {
        let host = only(lab, group)?;
        let text = lab.exec(&host.id, &["cat", "/run/cloud-init/result.json"])?;
        let found: serde_json::Value = serde_json::from_str(&text)?;
        ensure!(found["v1"]["datasource"] == "DataSourceEc2Local", "{text}");
        ensure!(found["v1"]["errors"] == json!([]), "{text}");
    }
    Ok(())
}

pub fn user_data_is_the_templates(lab: &mut Lab) -> Result<()> {
    for group in [CONTROL_PLANES[0], WORKERS[1]] {
        let host = only(lab, group)?;
        let template = template(lab, group)?;
        ensure!(template.starts_with("#!/bin/sh\n"), "{template}");
        ensure!(
            in_host(lab, &host.id)? == template,
            "cloud-init ran something else"
        );
        ensure!(
            lab.metadata(&host.id, "user-data")? == template,
            "metadata has something else"
        );
    }
    let one = template(lab, CONTROL_PLANES[0])?;
    ensure!(
        one != template(lab, WORKERS[0])?,
        "two roles have the same user data"
    );
    Ok(())
}
