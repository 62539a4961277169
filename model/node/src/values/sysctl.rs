//! Lines of `sysctlParameters`, in the syntax of sysctl.d(5), which is what kOps passes them on in.

use super::Refusal;

/// A kernel parameter to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name with dots between its parts: `net.ipv4.ip_forward`, `net.ipv4.conf.eth0/100.forwarding`.
    pub key: String,
    /// Value; several values are separated by one blank each.
    pub value: String,
    /// False with a `-` in front: then it is no error if the kernel rejects it.
    pub required: bool,
}

/// The parameters of an entry, which may be several lines. Comments and empty lines are none.
pub fn parse_parameters(entry: &str) -> Result<Vec<Parameter>, Refusal> {
    let lines = entry.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        .map(parse_line)
        .collect()
}

fn parse_line(line: &str) -> Result<Parameter, Refusal> {
    let refuse = |why: &str, hint: &str| Err(Refusal::new(format!("{line:?} {why}"), hint));
    let (required, setting) = match line.strip_prefix('-') {
        Some(rest) => (false, rest.trim_start()),
        None => (true, line),
    };
    let Some((key, value)) = setting.split_once('=') else {
        return refuse(
            "is not a kernel parameter",
            "write NAME=VALUE, such as net.ipv4.ip_forward=1",
        );
    };
    let key = key.trim_end();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '@');
    let parts: Vec<&str> = key.split(['.', '/']).collect();
    if parts.len() < 2
        || !parts
            .iter()
            .all(|part| !part.is_empty() && !part.starts_with('-') && part.chars().all(plain))
    {
        return refuse(
            "does not begin with the name of a kernel parameter",
            "write the whole name, such as vm.swappiness; patterns are not supported",
        );
    }
    let slashes_first = key
        .find('/')
        .is_some_and(|slash| key.find('.').is_none_or(|dot| slash < dot));
    let key = if slashes_first {
        swap_separators(key)
    } else {
        key.to_owned()
    };
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    // No value empties a list, such as net.ipv4.ip_local_reserved_ports.
    if value.chars().any(char::is_control) {
        return refuse(
            "has a control character in its value",
            "write NAME=VALUE, such as net.ipv4.ip_forward=1",
        );
    }
    if value.contains(" #") || value.contains(" ;") {
        return refuse(
            "has a comment behind the value, where the kernel takes it for a part of the value",
            "put the comment on a line of its own",
        );
    }
    Ok(Parameter {
        key,
        value,
        required,
    })
}

/// What sysctl.d(5) says of a name with slashes between its parts.
fn swap_separators(key: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    key.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::parse_parameters;

    #[test]
    fn lines_are_those_of_sysctl_d() {
        for (entry, wanted) in [
            ("# raised for search", vec![]),
            ("; other comment", vec![]),
            ("   ", vec![]),
            ("", vec![]),
            ("vm.swappiness = 10", vec![("vm.swappiness", "10", true)]),
            ("-net.ipv4.tcp_x=1", vec![("net.ipv4.tcp_x", "1", false)]),
            (
                "net/ipv4/conf/eth0.100/forwarding=1",
                vec![("net.ipv4.conf.eth0/100.forwarding", "1", true)],
            ),
            (
                "net.ipv4.tcp_rmem=4096\t87380   6291456",
                vec![("net.ipv4.tcp_rmem", "4096 87380 6291456", true)],
            ),
            (
                "kernel.core_pattern=|/bin/x %e=%p",
                vec![("kernel.core_pattern", "|/bin/x %e=%p", true)],
            ),
            (
                "net.ipv4.ip_local_reserved_ports = ",
                vec![("net.ipv4.ip_local_reserved_ports", "", true)],
            ),
            (
                "# a\nvm.a=1\r\n\nvm.b=2\n",
                vec![("vm.a", "1", true), ("vm.b", "2", true)],
            ),
        ] {
            let read = parse_parameters(entry).unwrap();
            let read: Vec<_> = read
                .iter()
                .map(|one| (one.key.as_str(), one.value.as_str(), one.required))
                .collect();
            assert_eq!(read, wanted, "{entry:?}");
        }
        for entry in [
            "vm.swappiness",
            "vm.swappiness=1\u{7}",
            "=1",
            "vm..a=1",
            ".vm.a=1",
            "vm/../../etc/x=1",
            "swappiness=1",
            "net.ipv4.conf.*.rp_filter=1",
            "vm.a b=1",
            "sysctl -w vm.a=1",
            "vm.a=1 # why",
            "vm.ä=1",
            "vm.a=1\nnonsense",
            "-",
            "--vm.a=1",
        ] {
            assert!(parse_parameters(entry).is_err(), "{entry:?}");
        }
    }
}
