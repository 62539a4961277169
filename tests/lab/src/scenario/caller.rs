//! AWS's API called from inside a host: curl signs with what the metadata service gave the instance, or with something
//! else. No SDK is between the scenario and what AWS says.

use super::Lab;
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// Of no bytes at all.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Prints what the metadata service has at a path, asked as IMDSv2 wants it.
const METADATA: &str = r#"
token=$(curl -sSf --max-time 10 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
curl -sSf --max-time 10 -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/$1"
"#;

/// An instance's, as its metadata service tells them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub token: String,
    /// RFC 3339.
    pub expiration: String,
}

/// What AWS said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    /// The code of an error, as `UnauthorizedOperation`; `None` when it is none.
    pub fn code(&self) -> Option<&str> {
        self.element("Code")
    }

    /// The first element of a name in the XML.
    pub fn element(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.body.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0)
    }

    /// The body of a call that worked.
    pub fn done(self) -> Result<String> {
        ensure!(self.status == 200, "refused: {} {}", self.status, self.body);
        Ok(self.body)
    }

    /// Status and code of one that did not.
    pub fn refusal(&self) -> (u16, &str) {
        (self.status, self.code().unwrap_or(""))
    }
}

/// A host with credentials.
#[derive(Debug, Clone)]
pub struct Caller<'a> {
    lab: &'a Lab,
    instance: String,
    pub credentials: Credentials,
}

impl Lab {
    /// What a host's metadata service has at a path below `/latest/`.
    pub fn metadata(&self, instance: &str, path: &str) -> Result<String> {
        self.exec(instance, &["sh", "-ec", METADATA, "metadata", path])
    }

    /// A host with the credentials it has now.
    pub fn caller(&self, instance: &str) -> Result<Caller<'_>> {
        let roles = "meta-data/iam/security-credentials/";
        let role = self.metadata(instance, roles)?;
        let text = self.metadata(instance, &format!("{roles}{}", role.trim()))?;
        let credentials = serde_json::from_str(&text).context("credentials of the instance")?;
        Ok(self.caller_with(instance, credentials))
    }

    /// A host with some credentials.
    pub fn caller_with(&self, instance: &str, credentials: Credentials) -> Caller<'_> {
        Caller {
            lab: self,
            instance: instance.to_owned(),
            credentials,
        }
    }
}

impl Caller<'_> {
    /// A call of a query API (`ec2`, `autoscaling`, `elasticloadbalancing`, `sts`, `iam`).
    pub fn query(&self, service: &str, action: &str, more: &[(&str, &str)]) -> Result<Answer> {
        let version = match service {
            "ec2" => "2016-11-15",
            "autoscaling" => "2011-01-01",
            "elasticloadbalancing" => "2015-12-01",
            "sts" => "2011-06-15",
            "iam" => "2010-05-08",
            _ => bail!("{service} has no query API that scenarios know"),
        };
        let region = &self.lab.up.region;
        let mut words = Vec::new();
        for (name, value) in [("Action", action), ("Version", version)]
            .iter()
            .chain(more)
        {
            words.extend(["--data-urlencode".to_owned(), format!("{name}={value}")]);
        }
        let host = match service {
            "iam" => "iam.amazonaws.com".to_owned(),
            _ => format!("{service}.{region}.amazonaws.com"),
        };
        words.push(format!("https://{host}/"));
        self.curl(service, &words)
    }

    /// GetObject.
    pub fn object(&self, bucket: &str, key: &str) -> Result<Answer> {
        let host = format!("{bucket}.s3.{}.amazonaws.com", self.lab.up.region);
        let hash = format!("x-amz-content-sha256: {EMPTY}");
        self.curl(
            "s3",
            &["--header".to_owned(), hash, format!("https://{host}/{key}")],
        )
    }

    fn curl(&self, service: &str, more: &[String]) -> Result<Answer> {
        let key = &self.credentials;
        let sign = format!("aws:amz:{}:{service}", self.lab.up.region);
        let user = format!("{}:{}", key.access_key_id, key.secret_access_key);
        let token = format!("x-amz-security-token: {}", key.token);
        let mut words = vec!["curl", "--silent", "--show-error", "--max-time", "60"];
        words.extend(["--write-out", "\n%{http_code}", "--aws-sigv4", &sign]);
        words.extend(["--user", &user, "--header", &token]);
        words.extend(more.iter().map(String::as_str));
        let said = self.lab.exec(&self.instance, &words)?;
        let (body, status) = said.rsplit_once('\n').context("curl says no status")?;
        Ok(Answer {
            status: status.trim().parse().context("curl's status")?,
            body: body.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_from_either_form_of_xml() {
        let of = |body: &str| Answer {
            status: 403,
            body: body.to_owned(),
        };
        let ec2 = "<Response><Errors><Error><Code>UnauthorizedOperation</Code></Error></Errors></Response>";
        assert_eq!(of(ec2).refusal(), (403, "UnauthorizedOperation"));
        let s3 = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
        assert_eq!(of(s3).refusal(), (403, "AccessDenied"));
        assert_eq!(of(s3).element("Message"), Some("no"));
        assert_eq!(of("no XML").code(), None);
    }
}
