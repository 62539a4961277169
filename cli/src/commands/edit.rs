//! `kctl edit`: changes one object of the spec, in an editor or by field. The edited text is kept if it cannot be stored.

mod editor;

use super::session::Session;
use super::spec_log;
use super::spec_objects::SpecObjects;
use crate::args::{Edit, EditWhat, Setters};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::{ClusterState, SpecChange, StoredObject, write_object};
use aws_client::store::Expect;
pub use editor::Editor;
use node::yaml;
use spec::api::{Object, Resource, Spec, set};
use spec::read::{Document, Problem, ReadOptions, read_documents_with};

/// Edits a cluster or an instance group.
pub async fn run(options: &Edit, session: &Session<'_>) -> Result<Outcome, CommandError> {
    match &options.what {
        EditWhat::Cluster(what) => {
            let read = ReadOptions {
                allow_unsupported: what.allow_unsupported,
            };
            let name = session.cluster_name(what.cluster.as_deref()).await?;
            let state = ClusterState::read(&session.store, &name, read).await?;
            let key = state.keys.config();
            let wrap = |object: &Resource<_>| Object::Cluster(object.clone());
            edit_object(
                &EditContext {
                    session,
                    state: &state,
                    key,
                    read,
                },
                &state.cluster,
                &what.setters,
                wrap,
                |object| match object {
                    Object::Cluster(cluster) => Some(cluster),
                    _ => None,
                },
            )
            .await
        }
        EditWhat::Objects(what) => super::own_objects::edit_objects(what, session).await,
        EditWhat::InstanceGroup(what) => {
            let read = ReadOptions {
                allow_unsupported: what.allow_unsupported,
            };
            let name = session.cluster_name(None).await?;
            let state = ClusterState::read(&session.store, &name, read).await?;
            let stored = state.group(&what.group)?;
            let key = state.keys.group(&what.group);
            let wrap = |object: &Resource<_>| Object::InstanceGroup(object.clone());
            edit_object(
                &EditContext {
                    session,
                    state: &state,
                    key,
                    read,
                },
                stored,
                &what.setters,
                wrap,
                |object| match object {
                    Object::InstanceGroup(group) => Some(group),
                    _ => None,
                },
            )
            .await
        }
    }
}

/// Fails with what the spec of a cluster would be refused for after these changes. Prints and stores nothing.
pub fn check_cluster_edit(
    state: &ClusterState,
    setters: &Setters,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let context = EditContext {
        session,
        state,
        key: state.keys.config(),
        read: ReadOptions::default(),
    };
    let mut cluster = state.cluster.object.clone();
    apply_setters(&mut cluster, setters)?;
    let document = read_back(&context, &Object::Cluster(cluster))?;
    let objects = merge_document(&context, &document);
    let mut problems = objects.problems_in(&session.url);
    problems.retain(Problem::is_error);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.into()),
    }
}

/// The object that is edited, and its cluster.
struct EditContext<'a> {
    session: &'a Session<'a>,
    state: &'a ClusterState,
    key: String,
    read: ReadOptions,
}

async fn edit_object<S: Spec + Default + Clone + PartialEq>(
    context: &EditContext<'_>,
    stored: &StoredObject<S>,
    setters: &Setters,
    wrap: impl Fn(&Resource<S>) -> Object,
    unwrap: impl Fn(Object) -> Option<Resource<S>>,
) -> Result<Outcome, CommandError> {
    if setters.set.is_empty() && setters.unset.is_empty() {
        return edit_text(context, stored, unwrap).await;
    }
    let mut object = stored.object.clone();
    apply_setters(&mut object, setters)?;
    if object == stored.object {
        context.session.shell.note("nothing changed");
        return Ok(Outcome::Fine);
    }
    let document = read_back(context, &wrap(&object))?;
    let stored_cluster = &context.state.cluster.object;
    let session = context.session;
    merge_document(context, &document).check_new(
        Some(stored_cluster),
        &session.url,
        session.shell,
    )?;
    save_object(context, stored, &object).await
}

/// Sets and removes single fields.
pub fn apply_setters<S: Spec + Default>(
    object: &mut Resource<S>,
    setters: &Setters,
) -> Result<(), CommandError> {
    let mut problems = Vec::new();
    for assignment in &setters.set {
        match assignment.split_once('=') {
            Some((path, value)) => problems.extend(
                set::set_field(object, path.trim(), value)
                    .err()
                    .unwrap_or_default(),
            ),
            None => problems.push(
                Problem::error("", format!("--set {assignment} has no value"))
                    .hint("write --set spec.PATH=VALUE"),
            ),
        }
    }
    for path in &setters.unset {
        problems.extend(
            set::unset_field(object, path.trim())
                .err()
                .unwrap_or_default(),
        );
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.into())
    }
}

/// Opens the editor until its text is valid or unchanged.
async fn edit_text<S: Spec>(
    context: &EditContext<'_>,
    stored: &StoredObject<S>,
    unwrap: impl Fn(Object) -> Option<Resource<S>>,
) -> Result<Outcome, CommandError> {
    let shell = context.session.shell;
    let mut editor = Editor::open(&context.key, &stored.text)?;
    loop {
        let Some(text) = editor.run_editor()? else {
            return match editor.was_rejected() {
                true => Err(CommandError::usage_error(
                    "nothing was stored: the spec still cannot be used",
                    format!("your text is in {}", editor.keep_file()),
                )),
                false => {
                    shell.note("nothing changed");
                    Ok(Outcome::Fine)
                }
            };
        };
        let (object, problems) = match read_documents_with(&context.key, &text, context.read) {
            Err(problems) => (None, problems),
            Ok(documents) => match documents.as_slice() {
                [document] => check_document(context, document, stored, &unwrap),
                _ => (
                    None,
                    vec![
                        Problem::error("", "the text does not hold exactly one object")
                            .hint("leave one"),
                    ],
                ),
            },
        };
        let (errors, warnings): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(Problem::is_error);
        let Some(object) = object.filter(|_| errors.is_empty()) else {
            editor.show_problems(&text, &errors)?;
            continue;
        };
        warnings
            .iter()
            .for_each(|warning| shell.print_problem(warning));
        return match save_object(context, stored, &object).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(error.with_hint(format!("your text is in {}", editor.keep_file()))),
        };
    }
}

fn check_document<S: Spec>(
    context: &EditContext<'_>,
    document: &Document,
    stored: &StoredObject<S>,
    unwrap: &impl Fn(Object) -> Option<Resource<S>>,
) -> (Option<Resource<S>>, Vec<Problem>) {
    let object =
        unwrap(document.object.clone()).filter(|object| object.name() == stored.object.name());
    let Some(object) = object else {
        let hint = format!(
            "it is {} {}: create another one with `kctl create -f`",
            S::KIND,
            stored.object.name()
        );
        return (
            None,
            vec![Problem::error("metadata.name", "kind and name cannot change").hint(hint)],
        );
    };
    let objects = merge_document(context, document);
    let mut problems = objects.problems_in(&context.session.url);
    problems.extend(objects.new_open_access(Some(&context.state.cluster.object)));
    (Some(object), problems)
}

fn merge_document(context: &EditContext<'_>, document: &Document) -> SpecObjects {
    let mut objects = SpecObjects::from_state(context.state);
    objects.put_document(document);
    objects
}

/// The object written and read back as a document, so that problems have line numbers.
fn read_back(context: &EditContext<'_>, object: &Object) -> Result<Document, CommandError> {
    let text = yaml::to_yaml(object).or_failed(
        "the spec has no YAML form",
        "report this: it is a defect of kctl",
    )?;
    let mut documents = read_documents_with(&context.key, &text, context.read)?;
    documents
        .pop()
        .ok_or_else(|| CommandError::usage_error("nothing is left of the object", "remove less"))
}

async fn save_object<S: Spec>(
    context: &EditContext<'_>,
    stored: &StoredObject<S>,
    object: &Resource<S>,
) -> Result<Outcome, CommandError> {
    let shell = context.session.shell;
    let expect = Expect::Version(stored.version.clone());
    match write_object(&context.session.store, &context.key, object, expect).await {
        Ok(_) => {}
        Err(error) if error.kind == ErrorKind::Precondition => {
            return Err(CommandError::from_message(
                ErrorKind::Precondition,
                format!(
                    "{} {} was changed by somebody else while you edited it",
                    S::KIND,
                    object.name()
                ),
                "edit it again: you will see their changes",
            ));
        }
        Err(error) => return Err(error),
    }
    let changes = SpecChange::from_objects(Some(&stored.object), Some(object));
    let changes = changes.into_iter().collect();
    spec_log::log_spec_changes("edit", &context.state.keys, changes, context.session).await;
    let name = context.state.name();
    shell.print_done(&format!("stored {} {}", S::KIND, object.name()));
    shell.hint(&format!(
        "kctl update {name}    shows what would change in AWS"
    ));
    Ok(Outcome::Fine)
}
