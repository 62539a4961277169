//! Names of container images, and prefixes of them.

use super::Refusal;
use super::network::{is_host, is_port};

/// The full name of an image, as `docker pull` understands it: without a registry it is on Docker Hub, without a repository in
/// `library`, and without tag and digest it is `latest`.
/// <https://github.com/distribution/reference/blob/main/reference.go> has the grammar.
pub fn parse_image(text: &str) -> Result<String, Refusal> {
    let refused = || {
        let message = format!("{text:?} is not the name of a container image");
        let hint = "write REGISTRY/NAME:TAG, such as registry.k8s.io/pause:3.10.1, without http:// in front";
        Refusal::new(message, hint)
    };
    let (named, digest) = match text.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (text, None),
    };
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named.get(last..).and_then(|rest| rest.split_once(':')) {
        // `localhost:5000` alone has no tag, but nobody names an image so.
        Some((end, tag)) => (named.get(..last + end.len()).unwrap_or(named), Some(tag)),
        None => (named, None),
    };
    let (registry, path) = match name.split_once('/') {
        Some((first, rest)) if is_registry_part(first) => (first, rest.to_owned()),
        _ => ("docker.io", name.to_owned()),
    };
    let registry = if registry == "index.docker.io" {
        "docker.io"
    } else {
        registry
    };
    let path = if registry == "docker.io" && !path.contains('/') {
        format!("library/{path}")
    } else {
        path
    };
    if !is_registry(registry)
        || !path.split('/').all(is_path_part)
        || !tag.is_none_or(is_tag)
        || !digest.is_none_or(is_digest)
    {
        return Err(refused());
    }
    let tag = match (tag, digest) {
        (None, None) => ":latest".to_owned(),
        (tag, _) => tag.map(|tag| format!(":{tag}")).unwrap_or_default(),
    };
    let digest = digest
        .map(|digest| format!("@{digest}"))
        .unwrap_or_default();
    Ok(format!("{registry}/{path}{tag}{digest}"))
}

/// The name of an image in containerd, by its full name: kubelet looks for one with a digest without its tag
/// (<https://github.com/distribution/reference/blob/main/normalize.go>, `ParseDockerRef`).
pub fn containerd_image(full: &str) -> String {
    let Some((named, digest)) = full.split_once('@') else {
        return full.to_owned();
    };
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let tag = named.get(last..).and_then(|end| end.find(':'));
    let bare = tag.and_then(|tag| named.get(..last + tag));
    format!("{}@{digest}", bare.unwrap_or(named))
}

/// What stands in front of names of images: `registry.example.com:5000/copies`. Slashes at its end are dropped.
pub fn parse_registry_prefix(text: &str) -> Result<String, Refusal> {
    let prefix = text.trim_end_matches('/');
    let (host, path) = prefix
        .split_once('/')
        .map_or((prefix, None), |(host, path)| (host, Some(path)));
    if is_registry(host) && path.is_none_or(|path| path.split('/').all(is_path_part)) {
        return Ok(prefix.to_owned());
    }
    let message = format!("{text:?} is not the beginning of an image's name");
    let hint = "write HOST, HOST:PORT or HOST/PATH, without https:// in front and without a tag";
    Err(Refusal::new(message, hint))
}

/// True if the first part of a name is a registry and not a repository of Docker Hub.
fn is_registry_part(first: &str) -> bool {
    first.contains(['.', ':'])
        || first == "localhost"
        || first.chars().any(|c| c.is_ascii_uppercase())
}

fn is_registry(text: &str) -> bool {
    // An IPv6 address stands in brackets and has colons of its own.
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => is_host(host) && is_port(port),
        _ => is_host(text),
    }
}

/// Lowercase letters and digits with `.`, `_`, `__` or dashes between them.
fn is_path_part(part: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut separators = part.split(letter).filter(|between| !between.is_empty());
    part.starts_with(letter)
        && part.ends_with(letter)
        && separators.all(|between| {
            matches!(between, "." | "_" | "__") || between.bytes().all(|byte| byte == b'-')
        })
}

fn is_tag(tag: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= 128
        && tag.starts_with(word)
        && tag.chars().all(|c| word(c) || matches!(c, '.' | '-'))
}

fn is_digest(digest: &str) -> bool {
    let length = match digest.split_once(':').map(|(kind, _)| kind) {
        Some("sha256") => 64,
        Some("sha512") => 128,
        _ => return false,
    };
    let hex = digest.split_once(':').map_or("", |(_, hex)| hex);
    hex.len() == length
        && hex
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::{containerd_image, parse_image, parse_registry_prefix};

    #[test]
    fn images_have_full_names_as_in_docker() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, full) in [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1.36", "docker.io/library/busybox:1.36"),
            ("nginx/unit", "docker.io/nginx/unit:latest"),
            ("docker.io/busybox", "docker.io/library/busybox:latest"),
            ("index.docker.io/library/x", "docker.io/library/x:latest"),
            (
                "registry.k8s.io/pause:3.10.1",
                "registry.k8s.io/pause:3.10.1",
            ),
            ("localhost:5000/x", "localhost:5000/x:latest"),
            ("localhost/x", "localhost/x:latest"),
            ("reg:5000/a/b:v1", "reg:5000/a/b:v1"),
            ("[fd00::1]:5000/x:1", "[fd00::1]:5000/x:1"),
            ("quay.io/a__b/c--d.e:V1_0", "quay.io/a__b/c--d.e:V1_0"),
            (
                "123456789012.dkr.ecr.eu-west-1.amazonaws.com/x:1",
                "123456789012.dkr.ecr.eu-west-1.amazonaws.com/x:1",
            ),
        ] {
            assert_eq!(parse_image(text).as_deref(), Ok(full));
        }
        let pinned = format!("busybox@{digest}");
        assert_eq!(
            parse_image(&pinned),
            Ok(format!("docker.io/library/busybox@{digest}"))
        );
        let both = format!("registry.k8s.io/pause:3@{digest}");
        assert_eq!(
            containerd_image(&both),
            format!("registry.k8s.io/pause@{digest}")
        );
        for same in ["reg:5000/a/b:v1", &format!("reg:5000/a@{digest}")] {
            assert_eq!(containerd_image(same), same);
        }
        assert_eq!(parse_image(&both), Ok(both));
        for text in [
            "",
            " busybox",
            "https://x.io/y",
            "docker://busybox",
            "Busybox",
            "a/B",
            "x.io/",
            "/x",
            "x:",
            "x@sha256:12",
            "x@",
            "a b",
            "x:a b",
            "x.io//y",
            "x.io/y:1:2",
            "x.io:port/y",
            "$(id)",
            "x.io/../y",
            "-x",
            "x\n",
        ] {
            assert!(parse_image(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn prefixes_are_hosts_with_paths() {
        for (text, prefix) in [
            ("registry.internal/mirror", "registry.internal/mirror"),
            ("registry.internal:5000/", "registry.internal:5000"),
            ("localhost", "localhost"),
            ("10.0.0.1:443/a/b", "10.0.0.1:443/a/b"),
        ] {
            assert_eq!(parse_registry_prefix(text).as_deref(), Ok(prefix));
        }
        for text in [
            "",
            "/",
            "https://registry.internal/mirror",
            "HTTP://x",
            "oci://x.io/y",
            "//x.io",
            "x.io/a:tag",
            "x.io/A",
            "x.io:0",
            "x.io:99999",
            "user@x.io",
            "x.io?y",
            "x y",
            "x.io/../y",
            "x.io//y",
        ] {
            assert!(parse_registry_prefix(text).is_err(), "{text:?}");
        }
    }
}
