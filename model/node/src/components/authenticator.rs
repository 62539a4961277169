//! What an instance has for the AWS IAM authenticator, which runs as a pod beside each API server.

use super::KUBERNETES;
use crate::config::File;
use crate::yaml::{Error, to_yaml};
use serde_json::json;

/// Common name of its certificate, and its name in the API server's configuration.
pub const NAME: &str = "aws-iam-authenticator";

/// Its certificate and key, `cert.pem` and `key.pem`, are there, as in kOps.
pub const FOLDER: &str = "/srv/kubernetes/aws-iam-authenticator";

/// The user of its pod and of these files.
pub const USER: u32 = 10_000;

/// Path of the file that tells the API server where to ask, as in kOps.
pub const WEBHOOK_CONFIG: &str = "/etc/kubernetes/authn.config";

/// That file: a kubeconfig without credentials.
pub fn webhook_config() -> Result<File, Error> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": NAME,
            "cluster": {
                "certificate-authority": format!("{KUBERNETES}/ca.crt"),
                "server": "https://127.0.0.1:21362/authenticate",
            },
        }],
        "contexts": [{"name": "webhook", "context": {"cluster": NAME, "user": "kube-apiserver"}}],
        "current-context": "webhook",
        "users": [{"name": "kube-apiserver"}],
    });
    Ok(File::new(WEBHOOK_CONFIG, to_yaml(&config)?).with_mode("0600"))
}
