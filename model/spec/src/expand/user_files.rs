//! Files (`fileAssets`) and systemd units (`hooks`) of the user on instances.

use super::Findings;
use crate::api::host::{FileAssetSpec, HookSpec};
use crate::api::{InstanceGroup, InstanceGroupRole};
use base64::Engine;
use base64::alphabet::STANDARD as STANDARD_ALPHABET;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use node::config::{File, UnitFile};
use node::values::{Refusal, parse_file, parse_image, parse_mode, parse_unit_name};

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
                Err(Refusal { message, hint }) => {
                    findings.add_group_error(group, "spec.fileAssets", message, &hint);
                }
            }
        }
    }
    files
}

/// Where a file goes: its path, or its name in kOps' folder of files.
pub(crate) fn file_place(asset: &FileAssetSpec) -> Result<String, Refusal> {
    match asset.path.as_deref().filter(|path| !path.is_empty()) {
        Some(path) => parse_file(path),
        None => parse_file(&format!("/srv/kubernetes/assets/{}", asset.name)),
    }
}

/// Bytes of base64 with or without padding: kOps takes only the latter. White space does not matter.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let compact: String = text.split_whitespace().collect();
    GeneralPurpose::new(&STANDARD_ALPHABET, config)
        .decode(compact)
        .ok()
}

fn file_asset(asset: &FileAssetSpec) -> Result<File, Refusal> {
    let path = file_place(asset)?;
    let mode = asset.mode.as_deref().filter(|mode| !mode.is_empty());
    let mode = format!("{:04o}", parse_mode(mode.unwrap_or("0440"))?);
    if asset.is_base64 != Some(true) {
        return Ok(File::new(path, &asset.content).with_mode(&mode));
    }
    let bytes = decode_base64(&asset.content).ok_or_else(|| {
        let message = format!("file {path} is not base64");
        Refusal::new(message, "encode its content, or set isBase64: false")
    })?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => File::new(path, text).with_mode(&mode),
        Err(bytes) => File {
            base64: true,
            ..File::new(path, STANDARD.encode(bytes.as_bytes())).with_mode(&mode)
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
                let own = hook.name.clone().filter(|name| !name.is_empty());
                (own.unwrap_or_else(|| name(index)), hook.clone())
            })
            .collect()
    };
    // The group's hooks come first: they win over hooks of the cluster with the same name.
    let all = numbered(&group.spec.hooks, "-ig")
        .into_iter()
        .chain(numbered(cluster, ""));
    for (name, hook) in all.filter(|(_, hook)| hook.roles.is_empty() || hook.roles.contains(&role))
    {
        let name = match parse_unit_name(&name) {
            Ok(name) => name,
            Err(Refusal { message, hint }) => {
                findings.add_group_error(group, "spec.hooks", message, &hint);
                continue;
            }
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

/// Why a hook has no unit.
#[derive(Debug, thiserror::Error)]
enum HookError {
    #[error(transparent)]
    Image(#[from] Refusal),
    #[error(transparent)]
    Template(#[from] templates::Error),
}

/// The id of a hook's container: containerd takes letters and digits with single `.`, `_` or `-` between them, 76 at most.
fn container_id(unit: &str) -> String {
    let name = unit.trim_end_matches(".service");
    let parts: Vec<&str> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .collect();
    let id: String = parts.join("-").chars().take(76).collect();
    match id.trim_end_matches('-') {
        "" => "hook".to_owned(),
        id => id.to_owned(),
    }
}

fn hook_unit(name: &str, hook: &HookSpec) -> Result<String, HookError> {
    let manifest = hook.manifest.clone().unwrap_or_default();
    if hook.use_raw_manifest == Some(true) {
        return Ok(manifest);
    }
    let container = hook.exec_container.clone();
    let container = container.filter(|container| container.image.is_some() && manifest.is_empty());
    let in_container = container.is_some();
    let container = container.unwrap_or_default();
    let image = match container.image.as_deref() {
        // ctr knows no short names.
        Some(image) => parse_image(image)?,
        None => String::new(),
    };
    let environment = container.environment.iter();
    Ok(templates::render(&templates::HookService {
        name: name.to_owned(),
        requires: hook.requires.clone(),
        before: hook.before.clone(),
        in_container,
        image: templates::quote_systemd_word(&image),
        container: templates::quote_systemd_word(&container_id(name)),
        environment: environment
            .map(|(name, value)| templates::quote_systemd_word(&format!("{name}={value}")))
            .collect(),
        command: container
            .command
            .iter()
            .map(|word| templates::quote_systemd_word(word))
            .collect(),
        service: manifest.trim_end().to_owned(),
    })?)
}
