//! Names of packages of the distribution.

use super::Refusal;

/// A name of apt (`NAME`, `NAME:ARCH`, `NAME=VERSION`, `NAME/SUITE`) or dnf (`NAME`, `NAME-VERSION.ARCH`). Nothing that the
/// package manager would take for an option, a file, a URL, a pattern or a removal (`NAME-`).
pub fn parse_package(text: &str) -> Result<(), Refusal> {
    let (name, rest) = text.split_at(text.find([':', '=', '/']).unwrap_or(text.len()));
    let inner =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_' | '~' | '^');
    let named = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inner)
        && !(rest.is_empty() && name.ends_with(['-', '+']) && !name.ends_with("++"));
    let version = |c: char| inner(c) || matches!(c, ':' | '=' | '/');
    let qualified = rest.is_empty() || (rest.len() > 1 && rest.chars().all(version));
    // apt and dnf install files whose names end so.
    let file = [".deb", ".rpm"].iter().any(|end| text.ends_with(end));
    if named && qualified && !text.contains("//") && !file {
        return Ok(());
    }
    let message = format!("{text:?} is not the name of a package");
    Err(Refusal::new(
        message,
        "write one name in each entry, such as htop",
    ))
}

#[cfg(test)]
mod tests {
    use super::parse_package;

    #[test]
    fn packages_are_named_as_apt_and_dnf_name_them() {
        for text in [
            "htop",
            "g++",
            "libstdc++6",
            "linux-modules-extra-6.8.0-1",
            "libc6:arm64",
            "nginx=1.24.0-2ubuntu7",
            "vim/noble",
            "perl-Foo",
            "7zip",
            "nginx=1:1.2~rc1",
        ] {
            assert_eq!(parse_package(text), Ok(()), "{text}");
        }
        for text in [
            "",
            " ",
            "a b",
            "a\nb",
            "-y",
            "--reinstall",
            "htop-",
            "htop+",
            "*",
            "lib*",
            "./x.deb",
            "/tmp/x.rpm",
            "x.rpm",
            "https://x/y.rpm",
            "a=",
            "a;b",
            "$(x)",
            "@group",
            "a,b",
        ] {
            assert!(parse_package(text).is_err(), "{text:?}");
        }
    }
}
