//! Instance types and images: expansion compares them with what AWS has, and refuses a spec that does not fit.

use super::{
    ADDRESSES, CONNECTIONS, DELEGATION, IMAGES, INSTANCE_TYPES, PERMISSIONS, PORTS, QUOTAS,
};
use crate::error::CommandError;
use crate::ui::preflight::PreflightRow;
use full::FullSpec;
use spec::read::Problem;

/// The rows of a spec that was expanded: nothing is wrong.
pub fn fine_rows(full: &FullSpec) -> Vec<PreflightRow> {
    let subject = match full.groups.len() {
        1 => "1 instance group".to_owned(),
        count => format!("{count} instance groups"),
    };
    vec![
        PreflightRow::fine(INSTANCE_TYPES, subject.clone(), "every zone offers them"),
        PreflightRow::fine(
            IMAGES,
            subject,
            "every image exists and fits its instance types",
        ),
    ]
}

/// The rows of a spec that cannot be expanded because of instance types or images; any other error stays one.
pub fn rows_of_error(
    error: CommandError,
    is_live: bool,
) -> Result<Vec<PreflightRow>, CommandError> {
    let errors = error.problems.iter().filter(|problem| problem.is_error());
    let rows: Option<Vec<PreflightRow>> = errors.map(row_of_problem).collect();
    let Some(mut rows) = rows.filter(|rows| !rows.is_empty()) else {
        return Err(error);
    };
    let checks = [QUOTAS, ADDRESSES, PERMISSIONS, DELEGATION, PORTS].into_iter();
    let unknown = checks.chain(is_live.then_some(CONNECTIONS)).map(|check| {
        let why = "depends on instance types and images that exist";
        PreflightRow::not_known(check, "the cluster", why)
    });
    rows.extend(unknown);
    Ok(rows)
}

fn row_of_problem(problem: &Problem) -> Option<PreflightRow> {
    let check = match problem.path.as_str() {
        "spec.machineType" => INSTANCE_TYPES,
        path if path.starts_with("spec.mixedInstancesPolicy.instances") => INSTANCE_TYPES,
        "spec.image" => IMAGES,
        _ => return None,
    };
    let object = problem.object.as_ref();
    let subject = object.map_or_else(String::new, |object| object.name.clone());
    let next = problem.hint.clone();
    let next = next.unwrap_or_else(|| format!("correct {}", problem.path));
    Some(PreflightRow::problem(
        check,
        subject,
        problem.message.clone(),
        next,
    ))
}
