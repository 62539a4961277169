//! `kctl render`: writes the desired state of a spec as files. Makes no AWS call: facts come from a file or are made up.

use super::assemble::{
    self, AssembledCluster, GroupConfig, SpecInputs, StoredSecrets, assemble_cluster,
    completed_documents, required_keysets, stand_in_keyset,
};
use super::own_addons::cluster_addons;
use super::spec_objects::{SpecObjects, read_files, read_text};
use crate::agents::AgentBinaries;
use crate::args::Render;
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::ui::Shell;
use cloud::facts::Facts;
use cloud::render::cloud_json;
use cloud::{Cloud, ObjectContent, S3Object};
use engine::{Part, Text};
use node::addons::OwnObject;
use node::config::{self, InstanceFacts};
use node::yaml::to_yaml;
use spec::api::Object;
use spec::catalog::Catalog;
use spec::read::ReadOptions;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// First line of the README of a rendered folder; only such a folder is overwritten.
const MARK: &str = "# Rendered by kctl";

/// Files by path below the folder.
type Files = BTreeMap<String, String>;

pub fn run(args: &Render, shell: &Shell) -> Result<Outcome, CommandError> {
    let read = ReadOptions {
        allow_unsupported: args.allow_unsupported,
    };
    let (objects, own) = one_cluster(&args.files, read)?;
    objects.check(shell)?;
    let facts = read_facts(args.facts.as_deref())?;
    let catalog = Catalog::embedded().or_failed(
        "the catalog of downloads is broken",
        "report this: it is a defect of kctl",
    )?;
    let ssh_keys: Vec<String> = objects
        .ssh_keys
        .iter()
        .map(|key| key.spec.public_key.clone())
        .collect();
    let inputs = SpecInputs {
        objects: &objects,
        facts: &facts,
        catalog: &catalog,
        ssh_keys: &ssh_keys,
    };
    let expanded = assemble::expand_spec(inputs)?;
    expanded
        .warnings
        .iter()
        .for_each(|warning| shell.print_problem(warning));
    let keysets: Vec<_> = required_keysets(&expanded)
        .iter()
        .map(|name| stand_in_keyset(name))
        .collect();
    let binaries = AgentBinaries::stand_ins(&expanded.full);
    let own = cluster_addons("the files", own);
    if !objects.cluster.spec.addons.is_empty() {
        shell.warning(
            "the addons of spec.addons are not rendered: `kctl update` reads their lists and manifests",
        );
    }
    let assets = objects.cluster.spec.assets.as_ref();
    if assets.is_some_and(|assets| assets.bundle.is_some()) {
        shell.warning(
            "the bundle of spec.assets.bundle is not rendered: files and images are shown where they are published",
        );
    }
    let assembled = assemble_cluster(
        expanded,
        &own,
        None,
        &keysets,
        &binaries,
        &StoredSecrets::default(),
    )?;
    let files = rendered_files(&assembled, &facts)?;
    write_folder(&args.out, &files)?;
    shell.note(&format!(
        "wrote {} files to {}",
        files.len(),
        args.out.display()
    ));
    Ok(Outcome::Fine)
}

/// The one cluster of the files.
fn one_cluster(
    files: &[std::path::PathBuf],
    read: ReadOptions,
) -> Result<(SpecObjects, Vec<OwnObject>), CommandError> {
    let (documents, own) = read_files(files, read)?;
    let clusters = documents
        .iter()
        .filter_map(|document| match &document.object {
            Object::Cluster(cluster) => Some(cluster),
            _ => None,
        });
    let clusters: Vec<_> = clusters.collect();
    let [cluster] = clusters.as_slice() else {
        return Err(CommandError::usage_error(
            format!(
                "the files hold {} Cluster objects, and one is needed",
                clusters.len()
            ),
            "render one cluster at a time",
        ));
    };
    let mut objects = SpecObjects::new((*cluster).clone());
    documents
        .iter()
        .for_each(|document| objects.put_document(document));
    Ok((objects, own))
}

fn read_facts(file: Option<&Path>) -> Result<Facts, CommandError> {
    let Some(file) = file else {
        return Ok(Facts {
            stand_in: true,
            ..Facts::default()
        });
    };
    let text = read_text(file)?;
    let facts: Result<Facts, _> = serde_saphyr::from_str(&text);
    facts.or_usage_error(
        format!("{} does not hold facts", file.display()),
        "see docs/operations/render.md for their form",
    )
}

fn rendered_files(assembled: &AssembledCluster, facts: &Facts) -> Result<Files, CommandError> {
    let mut files = Files::new();
    let full = &assembled.expanded.full;
    let cloud = cloud_json(&assembled.desired);
    files.insert(
        "README.md".to_owned(),
        readme_text(&full.name, facts.stand_in),
    );
    files.insert(
        "cluster-completed.yaml".to_owned(),
        completed_documents(&assembled.expanded)?,
    );
    files.insert("cloud.json".to_owned(), json_text(&cloud)?);
    for object in &assembled.desired {
        if let Cloud::IamRolePolicy(policy) = object {
            let name = format!("iam/{}.json", policy.policy_name);
            files.insert(name, json_text(&policy.policy_document)?);
        }
        if let Cloud::S3Object(S3Object { key, content }) = object
            && key.starts_with("addons/")
        {
            let text = match content {
                ObjectContent::Text(text) | ObjectContent::Signed(text) => text,
                ObjectContent::Hidden(hidden) => hidden.shown(),
                ObjectContent::Sha256(_) => continue,
            };
            files.insert(key.clone(), text.to_string());
        }
    }
    for (group, config) in &assembled.group_configs {
        add_group_files(&format!("groups/{group}"), config, &mut files)?;
    }
    Ok(files)
}

/// Adds the configuration files of the instances of one group.
fn add_group_files(
    dir: &str,
    group_config: &GroupConfig,
    files: &mut Files,
) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    if let Some(text) = &group_config.user_data {
        files.insert(format!("{dir}/user-data.sh"), text_with_placeholders(text));
    }
    let Some(stored) = &group_config.node_config else {
        return Ok(());
    };
    files.insert(format!("{dir}/nodeconfig.yaml"), stored.text.to_string());
    let config = config::read_node_config(&stored.text, &stored.sha256);
    let config = config.or_failed("could not read a NodeConfig back", DEFECT)?;
    let written = config::host_files(&config, &InstanceFacts::placeholder())
        .or_failed("could not make the files of the instances", DEFECT)?;
    for file in written {
        files.insert(
            format!("{dir}/files/{}", file.path.trim_start_matches('/')),
            file.content,
        );
    }
    for unit in &config.units {
        files.insert(format!("{dir}/units/{}", unit.name), unit.content.clone());
    }
    for (name, pod) in config
        .control_plane
        .iter()
        .flat_map(|control_plane| &control_plane.static_pods)
    {
        let text = to_yaml(pod).or_failed("a static pod has no YAML form", DEFECT)?;
        files.insert(format!("{dir}/manifests/{name}.yaml"), text);
    }
    for (name, pod) in config::etcd_pods(&config, "<folder on the volume>") {
        let text = to_yaml(&pod).or_failed("a static pod has no YAML form", DEFECT)?;
        files.insert(format!("{dir}/manifests/{name}.yaml"), text);
    }
    Ok(())
}

fn json_text(value: &serde_json::Value) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.or_failed(
        "an object has no JSON form",
        "report this: it is a defect of kctl",
    )? + "\n")
}

/// The text, with late values as `<KIND/NAME ATTRIBUTE>`.
fn text_with_placeholders(text: &Text) -> String {
    let part = |part: &Part| match part {
        Part::Literal(text) => text.to_string(),
        Part::Late {
            kind,
            name,
            attribute,
        } => format!("<{kind}/{name} {attribute}>"),
    };
    text.parts().iter().map(part).collect()
}

fn readme_text(cluster: &str, stand_in: bool) -> String {
    let made_up = if stand_in {
        "\nNo AWS call was made: account, images, hosted zones and shared networks are placeholders.\n"
    } else {
        ""
    };
    format!(
        "{MARK}\n\nWhat follows from the spec of {cluster}.\n\n```\nstand_in: {stand_in}\n```\n{made_up}
Certificates and the hashes of kctl's own binaries are made up: they exist once the cluster does.

| path | what |
|---|---|
| `cluster-completed.yaml` | the spec with all defaults filled in |
| `cloud.json` | every AWS object, and every object that instances read from the state store |
| `iam/` | policies of the roles |
| `addons/` | the addons: the list, and the objects of each, as protokube applies them |
| `groups/GROUP/` | what the instances of a group get: user data, NodeConfig, and the files, units and static pods made from it; values that differ between instances are in angle brackets |
"
    )
}

/// Replaces the folder's content, if `kctl render` wrote it.
fn write_folder(dir: &Path, files: &Files) -> Result<(), CommandError> {
    const OTHER: &str = "name a folder that is empty or not there yet";
    let failed = || format!("could not write to {}", dir.display());
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        let is_rendered =
            fs::read_to_string(dir.join("README.md")).is_ok_and(|text| text.starts_with(MARK));
        if !is_rendered {
            return Err(CommandError::usage_error(
                format!(
                    "{} holds something that is not from `kctl render`",
                    dir.display()
                ),
                OTHER,
            ));
        }
        fs::remove_dir_all(dir).or_failed(failed(), OTHER)?;
    }
    for (path, text) in files {
        let place = place_inside(dir, path)?;
        let failed = || format!("could not write {}", place.display());
        let parent = place.parent().unwrap_or(dir);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&place, text))
            .or_failed(
                failed(),
                "make sure that the folder can be written, and that the spec names no file in the place of a folder",
            )?;
    }
    Ok(())
}

/// The place of a file below the folder. The spec chooses names of files, but never a place outside.
fn place_inside(dir: &Path, path: &str) -> Result<PathBuf, CommandError> {
    let inside = |part| matches!(part, Component::Normal(_));
    if !path.is_empty() && Path::new(path).components().all(inside) {
        return Ok(dir.join(path));
    }
    Err(CommandError::usage_error(
        format!("{path} is not a place inside the rendered folder"),
        "correct the name or path in the spec",
    ))
}

#[cfg(test)]
mod tests {
    use super::place_inside;
    use std::path::Path;

    #[test]
    fn nothing_is_written_outside_the_folder() {
        let dir = Path::new("rendered");
        for path in [
            "",
            "/etc/x",
            "../x",
            "a/../../x",
            "a/..",
            "..",
            "./../x",
            "//x",
        ] {
            assert!(place_inside(dir, path).is_err(), "{path}");
        }
        for path in ["a", "groups/nodes/files/etc/x", "a/...", "..a", "a b"] {
            assert!(place_inside(dir, path).unwrap().starts_with(dir), "{path}");
        }
    }
}
