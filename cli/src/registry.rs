//! Image registries (OCI distribution specification 1.1): images are read from them by digest, and copied into one.

mod answer;
mod docker_config;
mod manifest;
mod token;

pub use docker_config::DockerConfig;
pub use manifest::{Descriptor, Manifest};

use crate::downloads::{file_client, upload_client, with_range};
use crate::error::CommandError;
use crate::fetch::DownloadFolder;
use answer::{check_status, repeat};
use anyhow::{Context, bail};
use aws_client::authorities::Authorities;
use hyper::body::Bytes;
use manifest::{LARGEST, MEDIA_TYPES};
use node::digest::sha256_hex;
use node::values::parse_image;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// An image in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    host: String,
    repository: String,
    /// Tag or digest.
    reference: String,
}

/// What is asked of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Pull,
    Push,
}

/// An answer of a registry that is no success.
#[derive(Debug)]
pub struct Refusal {
    host: String,
    access: Access,
    status: StatusCode,
    /// What the registry says of it: `: CODE: message`.
    why: String,
}

/// A client of registries. It asks for a token where a registry wants one, with the passwords of docker's configuration.
pub struct Registries {
    client: Client,
    /// For blobs that are sent, however long that takes.
    uploads: Client,
    passwords: DockerConfig,
    /// Headers that registries have accepted, by host and scope.
    tokens: RefCell<BTreeMap<(String, String), String>>,
}

impl ImageName {
    /// By a name as pods have it.
    pub fn parse(image: &str) -> anyhow::Result<Self> {
        let full = parse_image(image)?;
        let (host, rest) = full.split_once('/').unwrap_or_default();
        let (named, digest) = match rest.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (rest, None),
        };
        let (repository, tag) = match named.rsplit_once(':') {
            Some((repository, tag)) => (repository, tag),
            None => (named, ""),
        };
        let host = match host {
            "docker.io" => "registry-1.docker.io",
            host => host,
        };
        Ok(Self {
            host: host.to_owned(),
            repository: repository.to_owned(),
            reference: digest.unwrap_or(tag).to_owned(),
        })
    }

    fn url(&self, what: &str) -> String {
        format!("https://{}/v2/{}/{what}", self.host, self.repository)
    }

    fn scope(&self, access: Access) -> String {
        let actions = match access {
            Access::Pull => "pull",
            Access::Push => "pull,push",
        };
        format!("repository:{}:{actions}", self.repository)
    }

    fn refusal(&self, access: Access, status: StatusCode) -> Refusal {
        Refusal {
            host: self.host.clone(),
            access,
            status,
            why: String::new(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the answer of {} is {}{}",
            self.host, self.status, self.why
        )
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// What to do about it; `None`: it may pass.
    pub fn next_step(&self) -> Option<String> {
        match (self.status, self.access) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, access) => {
                let mut step = format!(
                    "log in: `docker login {}`; docs/operations/air-gap.md#passwords says how, if docker keeps passwords in a helper",
                    self.host
                );
                if access == Access::Pull {
                    step.push_str(". Some registries answer so if there is no such image: then correct the spec");
                }
                Some(step)
            }
            (StatusCode::NOT_FOUND, Access::Pull) => {
                Some("the registry has no such image: correct the spec".to_owned())
            }
            (StatusCode::NOT_FOUND, Access::Push) => Some(
                "the registry has no such repository, and makes none by itself: make it, and repeat the command"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

impl Registries {
    /// A client with docker's passwords.
    pub fn new(passwords: DockerConfig) -> Result<Self, CommandError> {
        Ok(Self {
            client: file_client()?,
            uploads: upload_client()?,
            passwords,
            tokens: RefCell::default(),
        })
    }

    /// The manifest or index of an image: by its name, or by a digest in its repository.
    pub async fn manifest(
        &self,
        image: &ImageName,
        digest: Option<&str>,
    ) -> anyhow::Result<Manifest> {
        let reference = digest.unwrap_or(&image.reference);
        let url = image.url(&format!("manifests/{reference}"));
        let ask = |client: &Client| client.get(&url).header(ACCEPT, MEDIA_TYPES.join(", "));
        let answer = self.send(image, Access::Pull, ask).await?;
        let mut answer = check_status(answer, image, Access::Pull).await?;
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).map(str::to_owned);
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > LARGEST {
                bail!("its manifest has more than {LARGEST} bytes");
            }
        }
        let found = format!("sha256:{}", sha256_hex(&bytes));
        if reference.contains(':') && reference != found {
            bail!("the registry sent a manifest with the digest {found} for {reference}");
        }
        Manifest::parse(bytes, kind.as_deref()).context("its manifest cannot be read")
    }

    /// The file with a blob of an image: its configuration, or a layer.
    pub async fn blob(
        &self,
        image: &ImageName,
        blob: &Descriptor,
        folder: &DownloadFolder,
    ) -> anyhow::Result<PathBuf> {
        let url = &image.url(&format!("blobs/{}", blob.digest));
        let ask = |from: u64| async move {
            let request = |client: &Client| with_range(client.get(url), from);
            self.send(image, Access::Pull, request).await
        };
        let fetched = folder.fetch(blob.sha256()?, ask).await;
        fetched.with_context(|| format!("could not fetch {}", blob.digest))
    }

    /// The digest of what the repository has under the image's tag or digest; `None`: nothing.
    pub async fn find_digest(&self, image: &ImageName) -> anyhow::Result<Option<String>> {
        let url = image.url(&format!("manifests/{}", image.reference));
        let ask = |client: &Client| client.head(&url).header(ACCEPT, MEDIA_TYPES.join(", "));
        let answer = self.send(image, Access::Push, ask).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let answer = check_status(answer, image, Access::Push).await?;
        let found = answer.headers().get("docker-content-digest");
        match found.and_then(|found| found.to_str().ok()) {
            Some(found) => Ok(Some(found.to_owned())),
            // A registry need not say it.
            None => Ok(Some(self.manifest(image, None).await?.digest)),
        }
    }

    /// True if the repository has this blob.
    pub async fn has_blob(&self, image: &ImageName, digest: &str) -> anyhow::Result<bool> {
        let url = image.url(&format!("blobs/{digest}"));
        let ask = |client: &Client| client.head(&url);
        let answer = self.send(image, Access::Push, ask).await?;
        Ok(answer.status().is_success())
    }

    /// Stores a blob in one request.
    pub async fn put_blob(
        &self,
        image: &ImageName,
        digest: &str,
        file: &Path,
    ) -> anyhow::Result<()> {
        let bytes = tokio::fs::read(file).await;
        let bytes = bytes.with_context(|| format!("could not read {}", file.display()))?;
        let bytes = Bytes::from(bytes);
        // Each attempt begins an upload of its own: what one that broke off left is not known.
        let sent = repeat(|| self.upload(image, digest, bytes.clone())).await?;
        check_status(sent, image, Access::Push).await.map(drop)
    }

    /// The answer to an upload, or to its beginning if that is no success.
    async fn upload(
        &self,
        image: &ImageName,
        digest: &str,
        bytes: Bytes,
    ) -> anyhow::Result<Response> {
        let url = image.url("blobs/uploads/");
        let post = |client: &Client| client.post(&url);
        let begun = self.send_once(image, Access::Push, &post).await?;
        if !begun.status().is_success() {
            return Ok(begun);
        }
        let place = begun.headers().get(LOCATION);
        let place = place.and_then(|place| place.to_str().ok());
        let place = place.context("the registry says no place for the upload")?;
        let own = Url::parse(&url)?;
        let mut place = own.join(place)?;
        place.query_pairs_mut().append_pair("digest", digest);
        let is_own = place.origin() == own.origin();
        let put = self.uploads.put(place);
        let put = put.header(CONTENT_TYPE, "application/octet-stream");
        // The request before it has brought a token if the registry wants one. No other host gets to see it.
        let token = self.known_token(image, Access::Push).filter(|_| is_own);
        send_with(put.body(bytes), token.as_deref()).await
    }

    /// Stores a manifest under the image's tag or digest, or under its own digest.
    pub async fn put_manifest(
        &self,
        image: &ImageName,
        manifest: &Manifest,
        by_digest: bool,
    ) -> anyhow::Result<()> {
        let reference = match by_digest {
            true => &manifest.digest,
            false => &image.reference,
        };
        let url = image.url(&format!("manifests/{reference}"));
        let put = |client: &Client| {
            client
                .put(&url)
                .header(CONTENT_TYPE, &manifest.media_type)
                .body(manifest.bytes.clone())
        };
        let sent = self.send(image, Access::Push, put).await?;
        check_status(sent, image, Access::Push).await.map(drop)
    }

    /// Sends a request until another attempt would change nothing.
    async fn send(
        &self,
        image: &ImageName,
        access: Access,
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> anyhow::Result<Response> {
        repeat(|| self.send_once(image, access, &request)).await
    }

    /// Sends a request, and once more with a token if the registry wants one.
    async fn send_once(
        &self,
        image: &ImageName,
        access: Access,
        request: &impl Fn(&Client) -> RequestBuilder,
    ) -> anyhow::Result<Response> {
        Authorities::of_system().check_address(&image.url(""))?;
        let known = self.known_token(image, access);
        let answer = send_with(request(&self.client), known.as_deref()).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        // Whoever the request was redirected to would say where the password of this registry goes.
        let own = Url::parse(&image.url(""))?;
        if answer.url().origin() != own.origin() {
            let other = answer.url().host_str().unwrap_or_default();
            bail!("{} redirects to {other}, which wants a login", image.host);
        }
        let challenge = answer.headers().get(WWW_AUTHENTICATE);
        let challenge = challenge.and_then(|challenge| challenge.to_str().ok());
        let challenge = challenge.unwrap_or_default().to_owned();
        let token = token::request_token(
            &self.client,
            &challenge,
            image,
            access,
            self.passwords.find_password(&image.host),
        );
        let token = token
            .await
            .with_context(|| format!("{} wants a login", image.host))?;
        let answer = send_with(request(&self.client), Some(&token)).await?;
        let key = (image.host.clone(), image.scope(access));
        self.tokens.borrow_mut().insert(key, token);
        Ok(answer)
    }

    fn known_token(&self, image: &ImageName, access: Access) -> Option<String> {
        let key = (image.host.clone(), image.scope(access));
        self.tokens.borrow().get(&key).cloned()
    }
}

async fn send_with(request: RequestBuilder, token: Option<&str>) -> anyhow::Result<Response> {
    let request = match token {
        Some(token) => request.header(AUTHORIZATION, token),
        None => request,
    };
    Ok(request.send().await.map_err(reqwest::Error::without_url)?)
}

#[cfg(test)]
mod tests {
    use super::{Access, ImageName, StatusCode};

    #[test]
    fn names_lead_to_repositories() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let pinned = format!("quay.io/a/b:1@{digest}");
        let by_digest = format!("quay.io/v2/a/b/{digest}");
        for (image, url) in [
            ("busybox", "registry-1.docker.io/v2/library/busybox/latest"),
            ("flannel/x:v1", "registry-1.docker.io/v2/flannel/x/v1"),
            (
                "registry.k8s.io/coredns/coredns:v1",
                "registry.k8s.io/v2/coredns/coredns/v1",
            ),
            ("reg.example.com:5000/a:1", "reg.example.com:5000/v2/a/1"),
            (pinned.as_str(), by_digest.as_str()),
        ] {
            let name = ImageName::parse(image).unwrap();
            assert_eq!(name.url(&name.reference), format!("https://{url}"));
        }
        let name = ImageName::parse("quay.io/a/b:1").unwrap();
        assert_eq!(name.scope(Access::Push), "repository:a/b:pull,push");
        assert!(ImageName::parse("Not An Image").is_err());
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let name = ImageName::parse("quay.io/a/b:1").unwrap();
        for (access, status, words) in [
            (
                Access::Pull,
                StatusCode::UNAUTHORIZED,
                "`docker login quay.io`",
            ),
            (
                Access::Push,
                StatusCode::FORBIDDEN,
                "`docker login quay.io`",
            ),
            (Access::Pull, StatusCode::NOT_FOUND, "correct the spec"),
            (Access::Push, StatusCode::NOT_FOUND, "no such repository"),
        ] {
            let step = name.refusal(access, status).next_step();
            assert!(step.is_some_and(|step| step.contains(words)), "{words}");
        }
        let passing = name.refusal(Access::Pull, StatusCode::BAD_GATEWAY);
        assert_eq!(passing.next_step(), None);
    }
}
