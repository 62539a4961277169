//! `kctl render`: everything that follows from a spec, as files. Asks nobody: what only AWS knows comes from a
//! file of facts, or is made up and said to be.

use super::assemble::{
    self, Assembled, Ingredients, Machine, assemble, completed_documents, keysets_of,
    stand_in_keyset,
};
use super::objects::{Objects, read_files, read_text};
use crate::agents::Found;
use crate::args::Render;
use crate::error::{CommandError, Context, Outcome};
use crate::ui::Shell;
use cloud::facts::Facts;
use cloud::render::cloud_json;
use cloud::{Cloud, ObjectContent, S3Object};
use engine::{Part, Text};
use node::config::{self, InstanceFacts};
use node::yaml::to_yaml;
use spec::api::Object;
use spec::catalog::Catalog;
use spec::read::ReadOptions;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// First line of the README of a rendered folder; only such a folder is overwritten.
const MARK: &str = "# Rendered by kctl";

/// Files by path below the folder.
type Files = BTreeMap<String, String>;

/// Renders a spec.
pub fn run(what: &Render, shell: &Shell) -> Result<Outcome, CommandError> {
    let read = ReadOptions {
        allow_unsupported: what.allow_unsupported,
    };
    let objects = one_cluster(&what.files, read)?;
    objects.check(shell)?;
    let facts = facts(what.facts.as_deref())?;
    let catalog = Catalog::embedded().failed(
        "the catalog of downloads is broken",
        "report this: it is a defect of kctl",
    )?;
    let ssh_keys: Vec<String> = objects
        .ssh_keys
        .iter()
        .map(|key| key.spec.public_key.clone())
        .collect();
    let ingredients = Ingredients {
        objects: &objects,
        facts: &facts,
        catalog: &catalog,
        ssh_keys: &ssh_keys,
    };
    let expanded = assemble::complete(ingredients)?;
    expanded
        .warnings
        .iter()
        .for_each(|warning| shell.problem(warning));
    let keysets: Vec<_> = keysets_of(&expanded)
        .iter()
        .map(|name| stand_in_keyset(name))
        .collect();
    let found = Found::stand_ins(&expanded.full);
    let assembled = assemble(expanded, None, &keysets, &found, false)?;
    let files = files(&assembled, &facts)?;
    write(&what.out, &files)?;
    if facts.stand_in {
        shell.warning("nobody was asked: account, images and hosted zones are made up (--facts FILE gives real ones)");
    }
    shell.note(&format!(
        "wrote {} files to {}",
        files.len(),
        what.out.display()
    ));
    Ok(Outcome::Fine)
}

/// The one cluster of the files.
fn one_cluster(files: &[std::path::PathBuf], read: ReadOptions) -> Result<Objects, CommandError> {
    let documents = read_files(files, read)?;
    let clusters = documents
        .iter()
        .filter_map(|document| match &document.object {
            Object::Cluster(cluster) => Some(cluster),
            _ => None,
        });
    let clusters: Vec<_> = clusters.collect();
    let [cluster] = clusters.as_slice() else {
        return Err(CommandError::usage(
            format!(
                "the files hold {} Cluster objects, and one is needed",
                clusters.len()
            ),
            "render one cluster at a time",
        ));
    };
    let mut objects = Objects::new((*cluster).clone());
    documents.iter().for_each(|document| objects.put(document));
    Ok(objects)
}

fn facts(file: Option<&Path>) -> Result<Facts, CommandError> {
    let Some(file) = file else {
        return Ok(Facts {
            stand_in: true,
            ..Facts::default()
        });
    };
    let text = read_text(file)?;
    let facts: Result<Facts, _> = serde_saphyr::from_str(&text);
    facts.usage(
        format!("{} does not hold facts", file.display()),
        "see docs/specification.md for their form",
    )
}

fn files(assembled: &Assembled, facts: &Facts) -> Result<Files, CommandError> {
    let mut files = Files::new();
    let full = &assembled.expanded.full;
    let cloud = cloud_json(&assembled.desired);
    files.insert("README.md".to_owned(), readme(&full.name, facts.stand_in));
    files.insert(
        "cluster-completed.yaml".to_owned(),
        completed_documents(&assembled.expanded)?,
    );
    files.insert("cloud.json".to_owned(), json(&cloud)?);
    for object in &assembled.desired {
        if let Cloud::IamRolePolicy(policy) = object {
            let name = format!("iam/{}.json", policy.policy_name);
            files.insert(name, json(&policy.policy_document)?);
        }
        if let Cloud::S3Object(S3Object {
            key,
            content: ObjectContent::Text(text),
        }) = object
            && key.starts_with("addons/")
        {
            files.insert(key.clone(), text.clone());
        }
    }
    for (group, machine) in &assembled.machines {
        machine_files(&format!("groups/{group}"), machine, &mut files)?;
    }
    Ok(files)
}

/// What machines of one group get, as one that stands for all of them.
fn machine_files(dir: &str, machine: &Machine, files: &mut Files) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    if let Some(text) = &machine.user_data {
        files.insert(format!("{dir}/user-data.sh"), with_late(text));
    }
    let Some((config, stored)) = &machine.node_config else {
        return Ok(());
    };
    files.insert(format!("{dir}/nodeconfig.yaml"), stored.text.clone());
    let written = config::host_files(config, &InstanceFacts::placeholder())
        .failed("could not make the files of machines", DEFECT)?;
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
        let text = to_yaml(pod).failed("a static pod has no YAML form", DEFECT)?;
        files.insert(format!("{dir}/manifests/{name}.yaml"), text);
    }
    for (name, pod) in config::etcd_pods(config, "<folder on the volume>") {
        let text = to_yaml(&pod).failed("a static pod has no YAML form", DEFECT)?;
        files.insert(format!("{dir}/manifests/{name}.yaml"), text);
    }
    Ok(())
}

fn json(value: &serde_json::Value) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.failed(
        "an object has no JSON form",
        "report this: it is a defect of kctl",
    )? + "\n")
}

/// The text, with late values as `<KIND/NAME ATTRIBUTE>`.
fn with_late(text: &Text) -> String {
    let part = |part: &Part| match part {
        Part::Literal(text) => text.clone(),
        Part::Late {
            kind,
            name,
            attribute,
        } => format!("<{kind}/{name} {attribute}>"),
    };
    text.parts().iter().map(part).collect()
}

fn readme(cluster: &str, stand_in: bool) -> String {
    let made_up = if stand_in {
        "\nNobody was asked: account, images, hosted zones and shared networks are made up.\n"
    } else {
        ""
    };
    format!(
        "{MARK}\n\nWhat follows from the spec of {cluster}.\n\n```\nstand_in: {stand_in}\n```\n{made_up}
Certificates and the hashes of kctl's own binaries are made up: they exist once the cluster does.

| path | what |
|---|---|
| `cluster-completed.yaml` | the spec with every decision written down |
| `cloud.json` | every AWS object, and every object that machines read from the state store |
| `iam/` | policies of the roles |
| `addons/` | what the cluster runs of itself: the list, and the objects of each addon, as protokube applies them |
| `groups/GROUP/` | what machines of an instance group get: user data, NodeConfig, and the files, units and static pods that follow from it; what differs from machine to machine is in angle brackets |
"
    )
}

/// Replaces the folder's content, if it is one of ours.
fn write(dir: &Path, files: &Files) -> Result<(), CommandError> {
    const OTHER: &str = "name a folder that is empty or not there yet";
    let failed = || format!("could not write to {}", dir.display());
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        let ours =
            fs::read_to_string(dir.join("README.md")).is_ok_and(|text| text.starts_with(MARK));
        if !ours {
            return Err(CommandError::usage(
                format!(
                    "{} holds something that is not from `kctl render`",
                    dir.display()
                ),
                OTHER,
            ));
        }
        fs::remove_dir_all(dir).failed(failed(), OTHER)?;
    }
    for (path, text) in files {
        let path = dir.join(path);
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .failed(failed(), OTHER)?;
    }
    Ok(())
}
