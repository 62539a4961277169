//! Where container images come from: `spec.assets`.

use serde::{Deserialize, Serialize};

/// The registry of the Kubernetes project.
const KUBERNETES: &str = "registry.k8s.io";

/// The registry or proxy that replaces public ones. At most one is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSource {
    /// Replaces the registry's host.
    pub proxy: Option<String>,
    /// A registry with flat names: `registry.k8s.io/` is dropped, and other slashes become dashes.
    pub registry: Option<String>,
}

impl ImageSource {
    /// The image where it comes from, by kOps' rules. A second time changes nothing.
    pub fn remap(&self, image: &str) -> String {
        let own = [&self.proxy, &self.registry];
        let base = own.into_iter().flatten().next();
        let Some(base) = base.map(|base| base.trim_end_matches('/')) else {
            return image.to_owned();
        };
        if image.starts_with(&format!("{base}/")) {
            return image.to_owned();
        }
        if self.proxy.is_some() {
            let (host, rest) = image.split_once('/').unwrap_or(("", image));
            // Docker Hub's images have no host in front.
            let has_host = host.contains(['.', ':']);
            return format!("{base}/{}", if has_host { rest } else { image });
        }
        let bare = image.strip_prefix(KUBERNETES).unwrap_or(image);
        format!("{base}/{}", bare.trim_start_matches('/').replace('/', "-"))
    }
}
