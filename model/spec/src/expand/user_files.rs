//! Files (`fileAssets`) and systemd units (`hooks`) of the user on instances.

use super::Findings;
use crate::api::host::{FileAssetSpec, HookSpec};
use crate::api::{InstanceGroup, InstanceGroupRole};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use node::config::{File, UnitFile};

/// Files for instances of this role. A file of the group replaces the cluster's file at the same path.
pub(super) fn file_assets(
    cluster: &[FileAssetSpec],
    group: &InstanceGroup,
    role: InstanceGroupRole,
    findings: &mut Findings,
) -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    for asset in cluster.iter().chain(&group.spec.file_assets) {
        if asset.roles.is_empty() || asset.roles.contains(&role) {
            match file_asset(asset) {
                Ok(file) => {
                    files.retain(|other| other.path != file.path);
                    files.push(file);
                }
                Err((message, hint)) => {
                    findings.add_group_error(group, "spec.fileAssets", message, hint);
                }
            }
        }
    }
    files
}

/// The file; the error is a message and a hint.
fn file_asset(asset: &FileAssetSpec) -> Result<File, (String, &'static str)> {
    let default = || format!("/srv/kubernetes/assets/{}", asset.name);
    let path = asset
        .path
        .clone()
        .filter(|path| !path.is_empty())
        .unwrap_or_else(default);
    let mode = asset.mode.as_deref().unwrap_or("0440");
    let bits = u32::from_str_radix(mode, 8)
        .ok()
        .filter(|bits| *bits <= 0o7777);
    let bits = bits.ok_or_else(|| {
        let message = format!("file {path} has mode {mode:?}, which is not octal");
        (message, "write it as 0440")
    })?;
    let mode = format!("{bits:04o}");
    if asset.is_base64 != Some(true) {
        return Ok(File::new(path, &asset.content).with_mode(&mode));
    }
    let compact: String = asset.content.split_whitespace().collect();
    let bytes = STANDARD.decode(&compact).map_err(|_| {
        (
            format!("file {path} is not base64"),
            "encode its content, or set isBase64: false",
        )
    })?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => File::new(path, text).with_mode(&mode),
        Err(_) => File {
            base64: true,
            ..File::new(path, compact).with_mode(&mode)
        },
    })
}

/// Units of hooks for instances of this role. A hook without a name is named after its index, as in kOps.
pub(super) fn hook_units(
    cluster: &[HookSpec],
    group: &InstanceGroup,
    role: InstanceGroupRole,
    findings: &mut Findings,
) -> Vec<UnitFile> {
    let mut units: Vec<UnitFile> = Vec::new();
    let numbered = |hooks: &[HookSpec], suffix: &str| -> Vec<(String, HookSpec)> {
        let name = |index| format!("kops-hook-{index}{suffix}");
        let named = hooks.iter().enumerate();
        named
            .map(|(index, hook)| {
                (
                    hook.name.clone().unwrap_or_else(|| name(index)),
                    hook.clone(),
                )
            })
            .collect()
    };
    // The group's hooks come first: they win over hooks of the cluster with the same name.
    let all = numbered(&group.spec.hooks, "-ig")
        .into_iter()
        .chain(numbered(cluster, ""));
    for (name, hook) in all.filter(|(_, hook)| hook.roles.is_empty() || hook.roles.contains(&role))
    {
        let name = if name.contains('.') {
            name
        } else {
            format!("{name}.service")
        };
        if units.iter().any(|unit| unit.name == name) {
            continue;
        }
        match hook_unit(&name, &hook) {
            Ok(content) => units.push(UnitFile {
                name,
                content,
                enabled: hook.disabled != Some(true),
            }),
            Err(error) => {
                findings.add_group_error(
                    group,
                    "spec.hooks",
                    format!("{name}: {error}"),
                    "correct it",
                );
            }
        }
    }
    units
}

fn hook_unit(name: &str, hook: &HookSpec) -> Result<String, templates::Error> {
    let manifest = hook.manifest.clone().unwrap_or_default();
    if hook.use_raw_manifest == Some(true) {
        return Ok(manifest);
    }
    let container = hook.exec_container.clone();
    let container = container.filter(|container| container.image.is_some() && manifest.is_empty());
    let in_container = container.is_some();
    let container = container.unwrap_or_default();
    let environment = container.environment.iter();
    templates::render(&templates::HookService {
        name: name.to_owned(),
        requires: hook.requires.clone(),
        before: hook.before.clone(),
        in_container,
        image: templates::quote_systemd_word(&container.image.unwrap_or_default()),
        container: templates::quote_systemd_word(name.trim_end_matches(".service")),
        environment: environment
            .map(|(name, value)| templates::quote_systemd_word(&format!("{name}={value}")))
            .collect(),
        command: container
            .command
            .iter()
            .map(|word| templates::quote_systemd_word(word))
            .collect(),
        service: manifest.trim_end().to_owned(),
    })
}
