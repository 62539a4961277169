//! Every change is observed after it was made: programs, the kernel and systemd may report success and change nothing.

use super::failure::permanent_failure;
use engine::Failure;
use node::host::HostObject;
use serde_json::Value;

/// Values that are longer are not shown in an error.
const LONGEST: usize = 200;

/// Fails unless the object is as it was wanted. `seen` is `None` if it does not exist.
pub(super) fn check_observed(want: &HostObject, seen: Option<HostObject>) -> Result<(), Failure> {
    let seen = match (want, seen) {
        // Whether it is up was observed when it was started; meanwhile it may have ended.
        (HostObject::Unit(want), Some(HostObject::Unit(mut seen))) => {
            seen.starts_with.clone_from(&want.starts_with);
            Some(HostObject::Unit(seen))
        }
        // A parameter of the user's may come with a module: that it is not there was told when it was written.
        (HostObject::Sysctl(want), None) if want.required => return Ok(()),
        (_, seen) => seen,
    };
    let Some(seen) = seen else {
        return Err(unchanged(want, "it is not there"));
    };
    if seen == *want {
        return Ok(());
    }
    Err(unchanged(want, &difference(want, &seen)))
}

fn unchanged(want: &HostObject, what: &str) -> Failure {
    let call = format!("looking at {} after it was changed", want.id());
    let message = format!("the change was reported as done, but {what}");
    Failure {
        hint: next_step(want).map(str::to_owned),
        ..permanent_failure(&call, &message)
    }
}

fn next_step(want: &HostObject) -> Option<&'static str> {
    match want {
        HostObject::KernelModule(_) => Some(
            "use an image whose kernel has this module, and whose modprobe.d does not disable it",
        ),
        HostObject::Packages(_) => Some("look at the log of the package tool below /var/log"),
        HostObject::Unit(_) => Some("see systemctl status of the unit"),
        _ => None,
    }
}

/// The fields that differ, with short values. Objects contain no secret.
fn difference(want: &HostObject, seen: &HostObject) -> String {
    let [want, seen] = [want, seen].map(|object| serde_json::to_value(object).unwrap_or_default());
    let fields = want.as_object().into_iter().flatten();
    let differing = fields.filter_map(|(name, wanted)| {
        let found = seen.get(name).unwrap_or(&Value::Null);
        (found != wanted).then(|| {
            let (found, wanted) = (found.to_string(), wanted.to_string());
            if found.len().max(wanted.len()) > LONGEST {
                format!("{name} is another")
            } else {
                format!("{name} is {found}, not {wanted}")
            }
        })
    });
    differing.collect::<Vec<_>>().join(", ")
}
