//! Names of packages of the distribution.

use super::Refusal;

/// Reads a name of apt (`NAME`, `NAME:ARCH`, `NAME=VERSION`, `NAME/SUITE`) or dnf (`NAME`, `NAME-VERSION.ARCH`), and returns its `NAME`:
/// what dpkg lists once it is installed. What dnf appends with a dash or a dot cannot be told from the name; rpm finds packages by
/// both. Refuses all that the package manager would take for an option, a file, a URL, a pattern, a task (`NAME^`) or a removal
/// (`NAME-`), and a leading epoch (`2:NAME`), which dnf takes only with a version and apt for a package named 2.
pub fn parse_package(text: &str) -> Result<&str, Refusal> {
    let (name, rest) = text.split_at(text.find([':', '=', '/']).unwrap_or(text.len()));
    let inner =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_' | '~' | '^');
    let named = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inner)
        && !(rest.is_empty() && name.ends_with('+') && !name.ends_with("++"));
    let version = |c: char| inner(c) || matches!(c, ':' | '=' | '/');
    let qualified = rest.is_empty() || (rest.len() > 1 && rest.chars().all(version));
    let epoch = rest.starts_with(':') && name.bytes().all(|byte| byte.is_ascii_digit());
    // apt and dnf install files whose names end so; apt removes a package, or installs a task.
    let other = [".deb", ".rpm", "-", "^"];
    let other = other.iter().any(|end| text.ends_with(end)) || name.ends_with('^');
    if named && qualified && !epoch && !text.contains("//") && !other {
        return Ok(name);
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
        for (text, name) in [
            ("htop", "htop"),
            ("g++", "g++"),
            ("libstdc++6", "libstdc++6"),
            ("linux-modules-extra-6.8.0-1", "linux-modules-extra-6.8.0-1"),
            ("libc6:arm64", "libc6"),
            ("nginx=1.24.0-2ubuntu7", "nginx"),
            ("vim/noble", "vim"),
            ("libc6:arm64/noble", "libc6"),
            ("perl-Foo", "perl-Foo"),
            ("7zip", "7zip"),
            ("nginx=1:1.2~rc1", "nginx"),
            ("glibc.i686", "glibc.i686"),
            (
                "htop-3.2.2-1.amzn2023.x86_64",
                "htop-3.2.2-1.amzn2023.x86_64",
            ),
            ("foo-1.0^20230101-1", "foo-1.0^20230101-1"),
        ] {
            assert_eq!(parse_package(text), Ok(name), "{text}");
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
            "htop:arm64-",
            "lamp-server^",
            "lamp-server^/noble",
            "2:foo",
            "2:foo-1.0-1",
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
