//! Programs that a test writes and then runs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable shell script. Another process does it: while this one had the file open for writing, a child that another
/// thread of it starts would hold that, and the kernel refuses to run a file that is open for writing ("Text file busy").
pub fn write_script(path: &Path, script: &str) {
    let mut install = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = install.stdin.take().unwrap();
    write!(text, "#!/bin/sh\n{script}\n").unwrap();
    drop(text);
    let written = install.wait().unwrap();
    assert!(written.success(), "writing {}", path.display());
}
