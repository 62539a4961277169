//! Files and images from a bundle in the state store: `spec.assets.bundle`.

use super::{Context, Findings};
use full::FullSpec;

const PATH: &str = "spec.assets.bundle";
const MAKE: &str = "make one for this spec with `kctl bundle create`, store it with `kctl bundle push`, and name it here";

/// Lets instances take every file and image from the bundle, if the spec names one. Fails if it lacks a file.
pub(super) fn take_from_bundle(full: &mut FullSpec, context: &Context, findings: &mut Findings) {
    let Some(bundle) = context.catalog.bundle() else {
        return;
    };
    let base = &full.state.config_base;
    if full.state.bucket.is_none() {
        let message = format!("instances cannot read a bundle in {base}");
        findings.add_error(PATH, message, "use a state store in S3: s3://BUCKET");
    }
    let mut missing = Vec::new();
    for asset in &mut full.assets {
        if let Some(file) = bundle.find_file(asset) {
            asset.urls = vec![format!("{base}/{}", file.key())];
            asset.sha256 = Some(file.sha256.clone());
        } else {
            let url = asset.urls.first().map_or("", String::as_str);
            missing.push(format!(
                "{url} ({} for {})",
                asset.name,
                asset.arch.as_str()
            ));
        }
    }
    if !missing.is_empty() {
        let message = format!("the bundle lacks {}", missing.join(", "));
        findings.add_error(PATH, message, MAKE);
    }
    full.image_archives = bundle
        .images
        .iter()
        .map(|image| image.in_store(base))
        .collect();
    check_runtimes(full, findings);
}

/// Packages of these runtimes come from their vendors' sites, whatever the spec says.
fn check_runtimes(full: &FullSpec, findings: &mut Findings) {
    const OUTSIDE: &str = "put it into the image of the instances, and turn this off";
    for group in &full.groups {
        let containerd = group.node.as_ref().map(|node| &node.containerd);
        let gvisor = containerd.is_some_and(|containerd| containerd.gvisor.is_some());
        let nvidia = containerd.is_some_and(|containerd| containerd.nvidia);
        for (installed, runtime) in [(gvisor, "gvisor"), (nvidia, "nvidiaGPU")] {
            if installed {
                let message = format!(
                    "containerd.{runtime} of the instance group {} is installed from its vendor's site, which no bundle replaces",
                    group.name
                );
                findings.add_error(PATH, message, OUTSIDE);
            }
        }
    }
}
