//! systemd units of the user.

use crate::api::InstanceGroupRole;
use crate::api::host::{ExecContainerAction, HookSpec};
use crate::read::{Problem, path};
use node::config::{OWN_UNITS, UPKEEP_UNITS};
use node::values::{Refusal, parse_unit_name, unit_type};

/// Its name is that of a unit which nobody else has.
pub fn check_name(at: &str, hook: &HookSpec, problems: &mut Vec<Problem>) {
    let Some(text) = hook.name.as_deref().filter(|name| !name.is_empty()) else {
        return;
    };
    let at = format!("{at}.name");
    let name = match parse_unit_name(text) {
        Ok(name) => name,
        Err(Refusal { message, hint }) => {
            return problems.push(Problem::error(at, message).hint(hint));
        }
    };
    // What masks a unit that kctl wants is refused where the settings of a group are complete.
    let masks = hook.disabled == Some(true) && UPKEEP_UNITS.contains(&name.as_str());
    if OWN_UNITS.contains(&name.as_str()) && !masks {
        let problem = Problem::error(at, format!("{name} is a unit that kctl itself sets up"));
        return problems.push(problem.hint("use another name"));
    }
    let kind = unit_type(&name).unwrap_or_default();
    if hook.disabled == Some(true) {
        return;
    }
    if name.contains("@.") {
        let problem = Problem::error(
            at,
            format!("{name} is a template, which systemd cannot start"),
        );
        problems.push(problem.hint("write what follows the @, as in name@instance.service"));
    } else if matches!(kind, "device" | "scope") {
        let problem = Problem::error(at, format!("systemd makes units of type {kind} itself"));
        problems.push(problem.hint("use a service"));
    } else if kind != "service" && hook.use_raw_manifest != Some(true) {
        let message = format!("{name} would get a [Service] section, which a {kind} does not have");
        problems.push(
            Problem::error(at, message).hint("write the whole unit, with useRawManifest: true"),
        );
    }
}

/// Of two hooks of one name an instance gets the first, as in kOps. That is meant where a group's replaces the cluster's, and a
/// mistake in one list.
pub fn check_unique_names(all: &[HookSpec], problems: &mut Vec<Problem>) {
    let named: Vec<_> = all
        .iter()
        .enumerate()
        .filter_map(|(index, hook)| {
            let text = hook.name.as_deref().filter(|name| !name.is_empty())?;
            Some((index, hook, parse_unit_name(text).ok()?))
        })
        .collect();
    for (index, hook, name) in &named {
        let mut before = named.iter().take_while(|(first, ..)| first < index);
        let same =
            before.find(|(_, other, taken)| taken == name && roles_meet(&hook.roles, &other.roles));
        if let Some((first, ..)) = same {
            let at = path::element_path("spec.hooks", *index);
            let message = format!("{name} is the unit of spec.hooks[{first}] too");
            problems.push(Problem::error(at, message).hint(APART));
        }
    }
}

/// What to do about two things for one place.
pub const APART: &str = "give each its own name and path, or roles that no instance has both of";

/// True if there are instances that get what is for these roles, and what is for the others. No roles are all roles.
pub fn roles_meet(roles: &[InstanceGroupRole], others: &[InstanceGroupRole]) -> bool {
    roles.is_empty() || others.is_empty() || roles.iter().any(|role| others.contains(role))
}

/// Names of environment variables of its container.
pub fn check_variables(at: &str, action: &ExecContainerAction, problems: &mut Vec<Problem>) {
    let at = format!("{at}.execContainer.environment");
    for name in action.environment.keys() {
        if name.is_empty()
            || name.contains(|c: char| c == '=' || c.is_whitespace() || c.is_control())
        {
            let problem = Problem::error(
                path::field_path(&at, name),
                format!("{name:?} is not the name of an environment variable"),
            );
            problems.push(problem.hint("use letters, digits and _"));
        }
    }
}

/// The sections of a raw manifest are those of a unit; other manifests are lines of one section.
pub fn check_manifest(at: &str, hook: &HookSpec, manifest: &str, problems: &mut Vec<Problem>) {
    let raw = hook.use_raw_manifest == Some(true);
    let mut continued = false;
    let mut has_section = false;
    for line in manifest.lines().map(str::trim) {
        let comment = line.is_empty() || line.starts_with(['#', ';']);
        let section = line.starts_with('[') && line.ends_with(']');
        let setting = line
            .split_once('=')
            .is_some_and(|(name, _)| is_setting(name));
        if !(continued || comment || section || setting) {
            let problem = Problem::error(
                format!("{at}.manifest"),
                format!("{line:?} is no line of a unit: systemd would ignore it"),
            );
            return problems
                .push(problem.hint("write NAME=VALUE, such as ExecStart=/usr/bin/true"));
        }
        has_section |= section && !continued;
        // A comment between the parts of a line does not end it.
        if !comment || line.is_empty() {
            continued = line.ends_with('\\');
        }
    }
    if raw && !has_section {
        let problem = Problem::error(format!("{at}.manifest"), "the unit has no section");
        problems.push(problem.hint("begin with [Unit] or [Service], or remove useRawManifest"));
    }
}

fn is_setting(name: &str) -> bool {
    let name = name.trim_end();
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}
