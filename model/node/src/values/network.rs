//! Hosts, ports, addresses and URLs.

use super::Refusal;
use std::net::{IpAddr, Ipv6Addr};

/// A DNS name or an address, and nothing else: no scheme, no port, no path.
pub fn parse_host(text: &str) -> Result<(), Refusal> {
    if is_name(text) || text.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let message = format!("{text:?} is not the name or address of a host");
    let hint = "write the name or address alone, without http://, port, path and blanks";
    Err(Refusal::new(message, hint))
}

/// A host, with or without a port behind a colon.
pub fn parse_host_and_port(text: &str) -> Result<(), Refusal> {
    let (host, port) = split_port(text);
    if is_host(host) && port.is_none_or(is_port) {
        return Ok(());
    }
    let message = format!("{text:?} is not a host");
    Err(Refusal::new(
        message,
        "write HOST or HOST:PORT, without http:// and path",
    ))
}

/// An IP address.
pub fn parse_address(text: &str) -> Result<IpAddr, Refusal> {
    text.parse().map_err(|_| {
        let message = format!("{text:?} is not an address");
        Refusal::new(message, "write an IP address such as 10.0.0.2")
    })
}

/// An IP address, with or without a port: `0.0.0.0:10249`, `[::]:10249`.
pub fn parse_endpoint(text: &str) -> Result<(), Refusal> {
    let (host, port) = split_port(text);
    let bare = text.parse::<IpAddr>().is_ok();
    let address = host.parse::<IpAddr>().is_ok() || bracketed(host).is_some();
    if bare || (address && port.is_none_or(is_port)) {
        return Ok(());
    }
    let message = format!("{text:?} is neither an address nor one with a port");
    Err(Refusal::new(
        message,
        "write ADDRESS or ADDRESS:PORT, such as 10.0.0.2 or 10.0.0.2:53",
    ))
}

/// A URL of http or https, with a host and without blanks, user name and fragment.
pub fn parse_web_url(text: &str) -> Result<(), Refusal> {
    parse_url(text, &["https", "http"])
}

/// A URL of one of these schemes, with a host.
pub fn parse_url(text: &str, schemes: &[&str]) -> Result<(), Refusal> {
    let well_formed = || {
        let (scheme, rest) = text.split_once("://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        let (host, port) = split_port(place);
        let plain = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}#".contains(c);
        let good = schemes.contains(&scheme)
            && is_host(host)
            && port.is_none_or(is_port)
            && path.chars().all(plain)
            && !path
                .split(['/', '?'])
                .any(|part| matches!(part, "." | ".."));
        good.then_some(())
    };
    well_formed().ok_or_else(|| {
        let scheme = schemes.first().unwrap_or(&"https");
        let message = format!("{text:?} is not a URL of {}", schemes.join(" or "));
        Refusal::new(
            message,
            format!("write {scheme}://HOST/PATH, without a user name"),
        )
    })
}

/// A host in a URL or in the name of an image: a name, an IPv4 address, or an IPv6 address in brackets.
pub(super) fn is_host(text: &str) -> bool {
    is_name(text) || bracketed(text).is_some()
}

pub(super) fn is_port(text: &str) -> bool {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn bracketed(text: &str) -> Option<Ipv6Addr> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    inside.parse().ok()
}

fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// A name of DNS; case does not matter there, and a dot at the end only says that the name is whole.
fn is_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let label = |label: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c != '-');
        label.len() <= 63
            && label.chars().all(inner)
            && edge(label.chars().next())
            && edge(label.chars().next_back())
    };
    // Numbers with dots are an address, or a mistyped one.
    let numbers = name
        .split('.')
        .all(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    name.len() <= 253 && name.split('.').all(label) && (!numbers || name.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::{parse_endpoint, parse_host, parse_host_and_port, parse_url, parse_web_url};

    #[test]
    fn hosts_are_names_or_addresses() {
        for text in [
            "proxy",
            "Proxy.Internal",
            "a.b.",
            "10.0.0.1",
            "fd00::1",
            "under_score.x",
            "1a.x",
        ] {
            assert_eq!(parse_host(text), Ok(()), "{text}");
        }
        for text in [
            "",
            "http://proxy",
            "proxy:3128",
            "proxy/",
            "a b",
            "-a",
            "a-",
            "a..b",
            "256.1.1.1",
            "10.0.0",
            "user@x",
            "x\n",
            "[fd00::1]",
            "ä.de",
            "*",
            "x,y",
            "$x",
        ] {
            assert!(parse_host(text).is_err(), "{text:?}");
        }
        for text in ["x", "x:5000", "[fd00::1]:5000", "10.0.0.1:1"] {
            assert_eq!(parse_host_and_port(text), Ok(()), "{text}");
        }
        for text in [
            "x:",
            "x:0",
            "x:65536",
            "x:+1",
            "x:http",
            ":1",
            "x/y",
            "https://x",
        ] {
            assert!(parse_host_and_port(text).is_err(), "{text:?}");
        }
        for text in ["0.0.0.0", "0.0.0.0:10249", "::", "[::]:10249"] {
            assert_eq!(parse_endpoint(text), Ok(()), "{text}");
        }
        for text in [
            "",
            "host:1",
            "0.0.0.0:",
            "0.0.0.0:70000",
            "@aws",
            "http://0.0.0.0",
        ] {
            assert!(parse_endpoint(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn urls_have_scheme_and_host() {
        for text in [
            "https://x",
            "http://x:80/",
            "https://x.io/a/b?c=d&e",
            "https://[fd00::1]:8443/x",
            "https://10.0.0.1/v2/proxy",
            "https://x/%20",
        ] {
            assert_eq!(parse_web_url(text), Ok(()), "{text}");
        }
        for text in [
            "",
            "x",
            "x.io/y",
            "https://",
            "https:///x",
            "https:/x",
            "https//x",
            "ftp://x",
            "HTTPS://x",
            "https://a b",
            "https://x/a b",
            "https://u:p@x",
            "https://x:99999",
            "https://x/../y",
            "https://x#y",
            "https://x/\n",
            "https://x/\"",
            " https://x",
            "s3://x",
        ] {
            assert!(parse_web_url(text).is_err(), "{text:?}");
        }
        assert_eq!(parse_url("s3://bucket/path", &["s3"]), Ok(()));
        assert!(parse_url("s3:///path", &["s3"]).is_err());
    }
}
