//! Compresses what is large and embedded: the size of kctl is limited.

// Cargo runs it: nothing else waits for its files.
#![allow(clippy::disallowed_methods)]

use flate2::Compression;
use flate2::write::GzEncoder;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

/// Addons whose CustomResourceDefinitions are in `src/addons/NAME/crds.yaml`.
const ADDONS: [&str; 5] = [
    "calico",
    "cert_manager",
    "helm_controller",
    "load_balancer_controller",
    "snapshot_controller",
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed=build.rs");
    for addon in ADDONS {
        let path = format!("src/addons/{addon}/crds.yaml");
        println!("cargo::rerun-if-changed={path}");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&fs::read(path)?)?;
        let compressed = encoder.finish()?;
        fs::write(
            Path::new(&folder).join(format!("{addon}.yaml.gz")),
            compressed,
        )?;
    }
    Ok(())
}
