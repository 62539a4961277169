//! Which host name is served by what. DNS and the front ask the same question, so a name resolves exactly when
//! something answers there.

use std::path::{Path, PathBuf};

/// Endings of AWS's public names.
const AWS: [&str; 3] = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];

/// Names that clients of the Docker Hub use for `docker.io`.
const DOCKER: [&str; 2] = ["registry-1.docker.io", "index.docker.io"];

/// What answers at a host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Site {
    /// The folder of the host's repositories.
    Registry(PathBuf),
    /// The folder of the host's files.
    Mirror(PathBuf),
    /// The AWS simulator.
    Aws,
}

/// The folders that name the sites: a site exists while its folder does.
#[derive(Debug, Clone)]
pub struct Sites {
    pub mirror: PathBuf,
    pub registry: PathBuf,
}

impl Sites {
    /// By a host name in any case, without port.
    pub fn find_site(&self, host: &str) -> Option<Site> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if !is_host_name(&host) {
            return None;
        }
        let hub = DOCKER.contains(&host.as_str());
        let folder = if hub { "docker.io" } else { &host };
        if let Some(registry) = find_folder(&self.registry, folder) {
            return Some(Site::Registry(registry));
        }
        if let Some(mirror) = find_folder(&self.mirror, &host) {
            return Some(Site::Mirror(mirror));
        }
        let aws = AWS.iter().any(|ending| host.ends_with(ending));
        aws.then_some(Site::Aws)
    }
}

fn find_folder(folder: &Path, host: &str) -> Option<PathBuf> {
    let path = folder.join(host);
    path.is_dir().then_some(path)
}

/// Labels of letters, digits, `-` and `_`: nothing that could be a path.
fn is_host_name(host: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    host.len() <= 253
        && host
            .split('.')
            .all(|label| !label.is_empty() && label.chars().all(plain))
}
