//! The spec objects of one cluster, from files or the store, merged and validated.

use super::store_place::find_place_problem;
use crate::error::{CommandError, ErrorContext};
use crate::state::{ClusterState, unreadable_error};
use crate::ui::Shell;
use aws_client::fips;
use node::addons::{OwnObject, split_own_objects};
use node::yaml::MAX_BYTES;
use spec::api::{Cluster, InstanceGroup, Object, SSHCredential};
use spec::read::{Document, Problem, ReadOptions, read_documents_with};
use spec::validate::{
    ClusterInput, find_duplicates, fips_problems, locate_problems, open_access_warnings, validate,
};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The objects of one cluster.
#[derive(Clone, Debug)]
pub struct SpecObjects {
    pub cluster: Cluster,
    /// Its instance groups, by name.
    pub groups: Vec<InstanceGroup>,
    /// Its public SSH keys.
    pub ssh_keys: Vec<SSHCredential>,
    /// The source texts, for line numbers in messages.
    pub documents: Vec<Document>,
}

impl SpecObjects {
    /// A cluster with nothing else.
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            groups: Vec::new(),
            ssh_keys: Vec::new(),
            documents: Vec::new(),
        }
    }

    /// The objects of a stored cluster.
    pub fn from_state(state: &ClusterState) -> Self {
        Self {
            cluster: state.cluster.object.clone(),
            groups: state.group_objects(),
            ssh_keys: Vec::new(),
            documents: state.documents.clone(),
        }
    }

    /// Adds an object, or replaces the one with its kind and name.
    pub fn put_document(&mut self, document: &Document) {
        let (kind, name) = (document.object.kind(), &document.object.metadata().name);
        self.documents
            .retain(|other| other.object.kind() != kind || other.object.metadata().name != *name);
        self.documents.push(document.clone());
        match &document.object {
            Object::Cluster(cluster) => self.cluster = cluster.clone(),
            Object::InstanceGroup(group) => {
                self.groups.retain(|other| other.name() != group.name());
                self.groups.push(group.clone());
                self.groups.sort_by(|a, b| a.name().cmp(b.name()));
            }
            Object::SSHCredential(key) => self.ssh_keys.push(key.clone()),
            Object::Keyset(_) => {}
        }
    }

    /// All objects, the cluster first.
    pub fn in_order(&self) -> Vec<Object> {
        let groups = self.groups.iter().cloned().map(Object::InstanceGroup);
        let keys = self.ssh_keys.iter().cloned().map(Object::SSHCredential);
        std::iter::once(Object::Cluster(self.cluster.clone()))
            .chain(groups)
            .chain(keys)
            .collect()
    }

    /// All problems of the objects: errors and warnings.
    pub fn all_problems(&self) -> Vec<Problem> {
        let input = ClusterInput {
            cluster: &self.cluster,
            instance_groups: &self.groups,
            ssh_keys: &self.ssh_keys,
        };
        let warnings = self
            .documents
            .iter()
            .flat_map(|document| document.warnings.clone());
        let mut found = validate(&input);
        if fips::is_running() {
            found.extend(fips_problems(&self.cluster));
        }
        self.locate_problems(&mut found);
        warnings.chain(found).collect()
    }

    /// As `all_problems`, and whether the objects belong into this state store.
    pub fn problems_in(&self, store: &str) -> Vec<Problem> {
        let mut problems = self.all_problems();
        problems.extend(find_place_problem(self, store));
        problems
    }

    /// Adds line numbers to problems.
    pub fn locate_problems(&self, problems: &mut [Problem]) {
        let documents: Vec<&Document> = self.documents.iter().collect();
        locate_problems(problems, &documents);
    }

    /// Warnings about access from the internet that the stored cluster does not allow yet.
    pub fn new_open_access(&self, stored: Option<&Cluster>) -> Vec<Problem> {
        let known = stored.map(open_access_warnings).unwrap_or_default();
        let mut found = open_access_warnings(&self.cluster);
        found.retain(|one| known.iter().all(|other| other.message != one.message));
        self.locate_problems(&mut found);
        found
    }

    /// As `check`, for objects that are about to be stored in a state store: also prints warnings about new access from the internet.
    pub fn check_new(
        &self,
        stored: Option<&Cluster>,
        store: &str,
        shell: &Shell,
    ) -> Result<(), CommandError> {
        if let Some(problem) = find_place_problem(self, store) {
            return Err(vec![problem].into());
        }
        self.check(shell)?;
        let warnings = self.new_open_access(stored);
        warnings
            .iter()
            .for_each(|warning| shell.print_problem(warning));
        Ok(())
    }

    /// Validates the objects: prints warnings, and fails with all errors.
    pub fn check(&self, shell: &Shell) -> Result<(), CommandError> {
        let (errors, warnings): (Vec<_>, Vec<_>) =
            self.all_problems().into_iter().partition(Problem::is_error);
        warnings
            .iter()
            .for_each(|warning| shell.print_problem(warning));
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors.into())
        }
    }
}

/// Objects of the spec, and those that are applied to the cluster.
pub type ReadObjects = (Vec<Document>, Vec<OwnObject>);

/// The files of `-f` and their texts.
#[derive(Debug)]
pub struct InputFiles(Vec<(PathBuf, String)>);

impl InputFiles {
    /// Reads the files; `-` is stdin.
    pub fn read(files: &[PathBuf]) -> Result<Self, CommandError> {
        let texts = files
            .iter()
            .map(|file| Ok((file.clone(), read_text(file)?)));
        Ok(Self(texts.collect::<Result<_, CommandError>>()?))
    }

    /// Parses all objects, in their order: those of the spec, and those that are applied to the cluster.
    pub fn read_objects(&self, options: ReadOptions) -> Result<ReadObjects, CommandError> {
        let (mut documents, mut problems) = (Vec::new(), Vec::new());
        let mut own = Vec::new();
        for (file, text) in &self.0 {
            let name = file.display().to_string();
            let (text, found) = split_own_objects(&name, text).map_err(unreadable_error)?;
            own.extend(found);
            match read_documents_with(&name, &text, options) {
                Ok(read) => documents.extend(read),
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(problems.into());
        }
        let duplicates = find_duplicates(&documents);
        if !duplicates.is_empty() {
            return Err(duplicates.into());
        }
        if documents.is_empty() && own.is_empty() {
            return Err(CommandError::usage_error(
                "the files hold no objects",
                "`kctl create cluster --dry-run` prints some",
            ));
        }
        Ok((documents, own))
    }

    /// Adds a hint where the text is. Text from stdin is kept in a temporary file.
    pub fn with_location_hint(&self, error: CommandError) -> CommandError {
        self.0.iter().fold(error, |error, (file, text)| {
            if file != Path::new("-") {
                return error.with_hint(format!("your text is in {}", file.display()));
            }
            match keep_in_temp_file(text) {
                Ok(path) => error.with_hint(format!("your text is in {}", path.display())),
                Err(cause) => error.with_hint(format!("your text could not be kept: {cause}")),
            }
        })
    }
}

/// Writes a text to a temporary file that only this user can read.
fn keep_in_temp_file(text: &str) -> std::io::Result<PathBuf> {
    let mut file = tempfile::Builder::new()
        .prefix("kctl-")
        .suffix(".yaml")
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep()?;
    Ok(path)
}

/// Reads all objects of files, in their order; `-` is stdin.
pub fn read_files(files: &[PathBuf], options: ReadOptions) -> Result<ReadObjects, CommandError> {
    InputFiles::read(files)?.read_objects(options)
}

/// Reads a file; `-` is stdin.
pub fn read_text(file: &Path) -> Result<String, CommandError> {
    // One more than the reader takes, so that it refuses what is longer: /dev/zero has no end.
    let most = MAX_BYTES as u64 + 1;
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().take(most).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(most).read_to_string(&mut text))
    };
    read.map(|_| text).or_usage_error(
        format!("could not read {}", file.display()),
        "name a file that is there and is text",
    )
}
