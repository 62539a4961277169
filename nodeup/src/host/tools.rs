//! Observes and writes the folder of tools.

use super::failure::file_failure;
use engine::Failure;
use host::Host;
use node::host::Tools;
use std::collections::BTreeMap;

pub(super) fn observe_tools(host: &Host, want: &Tools) -> Result<Option<Tools>, Failure> {
    let failed = file_failure("reading", &want.path);
    if host.read_metadata(&want.path).map_err(&failed)?.is_none() {
        return Ok(None);
    }
    let mut programs = BTreeMap::new();
    for (name, source) in &want.programs {
        let program = host.read_metadata(&format!("{}/bin/{name}", want.path));
        if program
            .map_err(&failed)?
            .is_some_and(|about| about.is_file())
        {
            programs.insert(name.clone(), source.clone());
        }
    }
    Ok(Some(Tools {
        programs,
        ..want.clone()
    }))
}

pub(super) fn put_tools(host: &Host, want: &Tools) -> Result<(), Failure> {
    let made = host.replace_programs(&want.path, &want.programs);
    made.map_err(file_failure("making", &want.path))
}
