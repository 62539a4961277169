//! Reads the state store from inside a host, with curl and the credentials of the host's metadata service.

use super::Lab;
use anyhow::{Context, Result};
use serde::Deserialize;

/// SHA-256 of an empty body.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Prints a path of the metadata service, read with IMDSv2.
const METADATA: &str = r#"
token=$(curl -sSf --max-time 10 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
curl -sSf --max-time 10 -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/$1"
"#;

/// Credentials of an instance, as in its metadata service.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub token: String,
}

/// A response of AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsResponse {
    pub status: u16,
    pub body: String,
}

/// A host with credentials.
#[derive(Debug, Clone)]
pub struct Caller<'a> {
    lab: &'a Lab,
    instance: String,
    pub credentials: Credentials,
}

impl Lab {
    /// Reads a path below `/latest/` of a host's metadata service.
    pub fn read_metadata(&self, instance: &str, path: &str) -> Result<String> {
        self.exec_in_host(instance, &["sh", "-ec", METADATA, "metadata", path])
    }

    /// A host with its current credentials.
    pub fn instance_caller(&self, instance: &str) -> Result<Caller<'_>> {
        let roles = "meta-data/iam/security-credentials/";
        let role = self.read_metadata(instance, roles)?;
        let text = self.read_metadata(instance, &format!("{roles}{}", role.trim()))?;
        let credentials = serde_json::from_str(&text).context("credentials of the instance")?;
        Ok(Caller {
            lab: self,
            instance: instance.to_owned(),
            credentials,
        })
    }
}

impl Caller<'_> {
    /// Reads an S3 object with GetObject.
    pub fn get_object(&self, bucket: &str, key: &str) -> Result<AwsResponse> {
        let host = format!("{bucket}.s3.{}.amazonaws.com", self.lab.up.region);
        let hash = format!("x-amz-content-sha256: {EMPTY}");
        let own = &self.credentials;
        let sign = format!("aws:amz:{}:s3", self.lab.up.region);
        let user = format!("{}:{}", own.access_key_id, own.secret_access_key);
        let token = format!("x-amz-security-token: {}", own.token);
        let url = format!("https://{host}/{key}");
        let mut words = vec!["curl", "--silent", "--show-error", "--max-time", "60"];
        words.extend(["--write-out", "\n%{http_code}", "--aws-sigv4", &sign]);
        words.extend(["--user", &user, "--header", &token, "--header", &hash, &url]);
        let said = self.lab.exec_in_host(&self.instance, &words)?;
        let (body, status) = said.rsplit_once('\n').context("curl says no status")?;
        Ok(AwsResponse {
            status: status.trim().parse().context("curl's status")?,
            body: body.to_owned(),
        })
    }
}
