//! Spec files.

use super::problems::fit_to_be_shown;
use super::same::same;
use node::yaml::to_yaml_documents;
use spec::api::Object;
use spec::read::{ReadOptions, read_documents_with, render_problems};
use spec::validate::validate_documents;

pub fn law(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for allow_unsupported in [false, true] {
        one(&text, ReadOptions { allow_unsupported });
    }
}

fn one(text: &str, options: ReadOptions) {
    let documents = match read_documents_with("spec.yaml", text, options) {
        Ok(documents) => documents,
        Err(problems) => {
            points_into(text, &problems);
            return fit_to_be_shown(&problems);
        }
    };
    let problems = validate_documents(&documents);
    if !problems.is_empty() {
        points_into(text, &problems);
        fit_to_be_shown(&problems);
    }
    let objects: Vec<Object> = documents
        .into_iter()
        .map(|document| document.object)
        .collect();
    let written = to_yaml_documents(&objects).expect("what was read has a YAML form");
    let again = read_documents_with("written.yaml", &written, options);
    let again =
        again.unwrap_or_else(|problems| panic!("{}\n{written}", render_problems(&problems)));
    let again: Vec<Object> = again.into_iter().map(|document| document.object).collect();
    same(&again, &objects, "a spec read back");
}

/// Findings stand at places that the file has.
fn points_into(text: &str, problems: &[spec::read::Problem]) {
    let lines = text.split('\n').count() + text.matches('\r').count();
    for place in problems.iter().filter_map(|problem| problem.place.as_ref()) {
        assert!(place.line <= lines + 1, "{place:?} of {lines} lines");
    }
}
