//! `kctl edit`: one object of the spec, in an editor or field by field. What the user typed is never lost.

mod editor;

use super::objects::Objects;
use super::session::Session;
use super::spec_log;
use crate::args::{Edit, EditWhat, Setters};
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::state::{ClusterState, SpecChange, Stored, write_object};
use aws_client::store::Expect;
use editor::Editor;
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
            let name = session.cluster(what.cluster.as_deref()).await?;
            let state = ClusterState::read(&session.store, &name, read).await?;
            let key = state.keys.config();
            let wrap = |object: &Resource<_>| Object::Cluster(object.clone());
            edit(
                &Place {
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
        EditWhat::InstanceGroup(what) => {
            let read = ReadOptions {
                allow_unsupported: what.allow_unsupported,
            };
            let name = session.cluster(None).await?;
            let state = ClusterState::read(&session.store, &name, read).await?;
            let stored = state.group(&what.group)?;
            let key = state.keys.group(&what.group);
            let wrap = |object: &Resource<_>| Object::InstanceGroup(object.clone());
            edit(
                &Place {
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

/// What is edited.
struct Place<'a> {
    session: &'a Session<'a>,
    state: &'a ClusterState,
    key: String,
    read: ReadOptions,
}

async fn edit<S: Spec + Default + Clone>(
    place: &Place<'_>,
    stored: &Stored<S>,
    setters: &Setters,
    wrap: impl Fn(&Resource<S>) -> Object,
    unwrap: impl Fn(Object) -> Option<Resource<S>>,
) -> Result<Outcome, CommandError> {
    if setters.set.is_empty() && setters.unset.is_empty() {
        return edit_text(place, stored, unwrap).await;
    }
    let mut object = stored.object.clone();
    apply_setters(&mut object, setters)?;
    let document = read_back(place, &wrap(&object))?;
    laid_over(place, &document).check(place.session.shell)?;
    save(place, stored, &object).await
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
                set::set(object, path.trim(), value)
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
        problems.extend(set::unset(object, path.trim()).err().unwrap_or_default());
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.into())
    }
}

/// Opens the editor until what comes back can be used, or comes back as it was.
async fn edit_text<S: Spec>(
    place: &Place<'_>,
    stored: &Stored<S>,
    unwrap: impl Fn(Object) -> Option<Resource<S>>,
) -> Result<Outcome, CommandError> {
    let shell = place.session.shell;
    let mut editor = Editor::open(&place.key, &stored.text)?;
    loop {
        let Some(text) = editor.edited()? else {
            return match editor.unusable() {
                true => Err(CommandError::usage(
                    "nothing was stored: the spec still cannot be used",
                    format!("your text is in {}", editor.keep()),
                )),
                false => {
                    shell.note("nothing changed");
                    Ok(Outcome::Fine)
                }
            };
        };
        let (object, problems) = match read_documents_with(&place.key, &text, place.read) {
            Err(problems) => (None, problems),
            Ok(documents) => match documents.as_slice() {
                [document] => checked(place, document, stored, &unwrap),
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
            editor.complain(&text, &errors)?;
            continue;
        };
        warnings.iter().for_each(|warning| shell.problem(warning));
        return match save(place, stored, &object).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(error.hint(format!("your text is in {}", editor.keep()))),
        };
    }
}

fn checked<S: Spec>(
    place: &Place<'_>,
    document: &Document,
    stored: &Stored<S>,
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
    (Some(object), laid_over(place, document).problems())
}

fn laid_over(place: &Place<'_>, document: &Document) -> Objects {
    let mut objects = Objects::stored(place.state);
    objects.put(document);
    objects
}

/// The object as a file would have it, so that findings have places.
fn read_back(place: &Place<'_>, object: &Object) -> Result<Document, CommandError> {
    let text = yaml::to_yaml(object).failed(
        "the spec has no YAML form",
        "report this: it is a defect of kctl",
    )?;
    let mut documents = read_documents_with(&place.key, &text, place.read)?;
    documents
        .pop()
        .ok_or_else(|| CommandError::usage("nothing is left of the object", "remove less"))
}

async fn save<S: Spec>(
    place: &Place<'_>,
    stored: &Stored<S>,
    object: &Resource<S>,
) -> Result<Outcome, CommandError> {
    let shell = place.session.shell;
    let expect = Expect::Version(stored.version.clone());
    match write_object(&place.session.store, &place.key, object, expect).await {
        Ok(_) => {}
        Err(error) if error.kind == Kind::Precondition => {
            return Err(CommandError::said(
                Kind::Precondition,
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
    let changes = SpecChange::of(Some(&stored.object), Some(object));
    let changes = changes.into_iter().collect();
    spec_log::log("edit", &place.state.keys, changes, place.session).await;
    let name = place.state.name();
    shell.done(&format!("stored {} {}", S::KIND, object.name()));
    shell.hint(&format!(
        "kctl update {name}    shows what would change in AWS"
    ));
    Ok(Outcome::Fine)
}
