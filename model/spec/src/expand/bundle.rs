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
    check_others(full, findings);
}

/// What instances fetch whatever the spec says: packages of these runtimes from their vendors' sites, and images of hooks.
fn check_others(full: &FullSpec, findings: &mut Findings) {
    const OUTSIDE: &str = "put it into the image of the instances, and leave it out here";
    for group in &full.groups {
        let Some(node) = &group.node else { continue };
        let mut fetched = Vec::new();
        if node.containerd.gvisor.is_some() {
            fetched.push("the packages of containerd.gvisor".to_owned());
        }
        if node.containerd.nvidia {
            fetched.push("the packages of containerd.nvidiaGPU".to_owned());
        }
        let pulls = |content: &str| content.contains(" images pull ");
        let units = node.units.iter();
        let hooks = units.filter(|unit| unit.enabled && pulls(&unit.content));
        fetched.extend(hooks.map(|unit| format!("the image of the hook {}", unit.name)));
        for what in fetched {
            let message = format!(
                "instances of {} fetch {what} from elsewhere, which no bundle replaces",
                group.name
            );
            findings.add_error(PATH, message, OUTSIDE);
        }
    }
}
