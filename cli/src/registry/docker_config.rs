//! Passwords of registries: `config.json`, as `docker login` writes it.

use crate::env;
use crate::error::{CommandError, ErrorContext};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Key of the Docker Hub's password.
const HUB: &str = "https://index.docker.io/v1/";

/// The part of docker's configuration that has passwords. Passwords that a helper keeps are not in it.
#[derive(Clone, Default, Deserialize)]
pub struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Login>,
}

#[derive(Clone, Default, Deserialize)]
struct Login {
    /// Base64 of `USER:PASSWORD`.
    auth: Option<String>,
}

impl std::fmt::Debug for DockerConfig {
    /// Without passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.auths.keys()).finish()
    }
}

impl DockerConfig {
    /// Reads the user's; empty if there is none.
    pub fn read() -> Result<Self, CommandError> {
        const HINT: &str = "correct it, or log in again with `docker login`";
        let folder = env::get_variable(env::DOCKER_CONFIG).map(PathBuf::from);
        let folder = folder.or_else(|| env::home_dir().map(|home| home.join(".docker")));
        let Some(path) = folder.map(|folder| folder.join("config.json")) else {
            return Ok(Self::default());
        };
        let failed = || format!("could not read {}", path.display());
        match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            read => {
                let bytes = read.or_usage_error(failed(), HINT)?;
                serde_json::from_slice(&bytes).or_usage_error(failed(), HINT)
            }
        }
    }

    /// User and password for a registry, in base64 as HTTP has them.
    pub(super) fn find_password(&self, host: &str) -> Option<&str> {
        let hub = (host == "registry-1.docker.io").then_some(HUB);
        let url = format!("https://{host}");
        let mut keys = [hub, Some(host), Some(url.as_str())].into_iter().flatten();
        let login = keys.find_map(|key| self.auths.get(key))?;
        login.auth.as_deref().filter(|auth| !auth.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::DockerConfig;

    #[test]
    fn passwords_are_found_by_host_and_shown_to_nobody() {
        let config: DockerConfig = serde_json::from_str(
            r#"{"auths": {"reg.example.com": {"auth": "YTpi"}, "https://index.docker.io/v1/": {"auth": "YzpkCg=="}, "kept.example.com": {}}, "credsStore": "x"}"#,
        )
        .unwrap();
        assert_eq!(config.find_password("reg.example.com"), Some("YTpi"));
        assert_eq!(
            config.find_password("registry-1.docker.io"),
            Some("YzpkCg==")
        );
        assert_eq!(config.find_password("kept.example.com"), None);
        assert_eq!(config.find_password("other.example.com"), None);
        assert!(!format!("{config:?}").contains("YTpi"));
    }
}
