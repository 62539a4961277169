//! S3 as our clients have it, at a server of a test's own.

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;

/// A client's settings, without interceptors.
pub(crate) fn client_builder(address: &str) -> aws_sdk_s3::config::Builder {
    aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .endpoint_url(format!("http://{address}"))
        .credentials_provider(Credentials::new("AKID", "secret", None, None, "given"))
        .force_path_style(true)
        .http_client(crate::fence::wire::fenced_http_client(None))
}
