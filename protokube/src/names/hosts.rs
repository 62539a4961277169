//! protokube's block in the text of `/etc/hosts`: everything else in the file is left as it is.

use std::collections::BTreeMap;
use std::net::IpAddr;

const BEGIN: &str = "# Begin of names that protokube writes";
const END: &str = "# End of names that protokube writes";

/// The file's text with these names in protokube's block, and all other lines as they were. A block without its end, of a machine that
/// died while it was written, ends where the file does.
pub fn with_entries(text: &str, names: &BTreeMap<String, IpAddr>) -> String {
    let (before, _, after) = parts(text);
    let mut out = before.to_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    // After all else, so that lines of others stay where they are in the file while the block changes.
    out.push_str(after);
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(BEGIN);
    out.push('\n');
    for (name, address) in names {
        out.push_str(&format!("{address} {name}\n"));
    }
    out.push_str(END);
    out.push('\n');
    out
}

/// The names in protokube's block.
pub fn entries(text: &str) -> BTreeMap<String, IpAddr> {
    let (_, block, _) = parts(text);
    let entry = |line: &str| {
        let (address, name) = line.split_once(' ')?;
        Some((name.trim().to_owned(), address.parse().ok()?))
    };
    block.lines().filter_map(entry).collect()
}

/// What is before the block, in it, and after it.
fn parts(text: &str) -> (&str, &str, &str) {
    let Some((before, rest)) = split_at_line(text, BEGIN) else {
        return (text, "", "");
    };
    match split_at_line(rest, END) {
        Some((block, after)) => (before, block, after),
        None => (before, rest, ""),
    }
}

/// What is before and after a line.
fn split_at_line<'a>(text: &'a str, line: &str) -> Option<(&'a str, &'a str)> {
    let mut at = 0;
    for one in text.split_inclusive('\n') {
        let next = at + one.len();
        if one.trim_end() == line {
            return Some((text.get(..at)?, text.get(next..)?));
        }
        at = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(pairs: &[(&str, &str)]) -> BTreeMap<String, IpAddr> {
        let pair = |(name, address): &(&str, &str)| ((*name).to_owned(), address.parse().unwrap());
        pairs.iter().map(pair).collect()
    }

    proptest! {
        #[test]
        fn what_others_wrote_stays_and_what_was_written_is_read(
            before in "([a-z0-9.# ]{0,20}\n){0,4}[a-z]{0,5}",
            between in "([a-z0-9.# ]{0,20}\n){0,4}",
            first in proptest::collection::btree_map("etcd-[a-c]", any::<[u8; 4]>(), 0..3),
            second in proptest::collection::btree_map("etcd-[a-c]", any::<[u8; 4]>(), 0..3),
        ) {
            let [first, second] = [first, second].map(|names| {
                let one = |(name, octets): (String, [u8; 4])| (name, IpAddr::from(octets));
                names.into_iter().map(one).collect::<BTreeMap<_, _>>()
            });
            let once = with_entries(&before, &first);
            let more = format!("{once}{between}");
            let twice = with_entries(&more, &second);
            prop_assert_eq!(entries(&twice), second.clone());
            prop_assert_eq!(with_entries(&twice, &second), twice.clone(), "at rest");
            let others: Vec<&str> = before.lines().chain(between.lines()).collect();
            let kept: Vec<&str> = twice.lines().take(others.len()).collect();
            prop_assert_eq!(kept, others);
        }
    }

    #[test]
    fn a_block_that_was_cut_off_is_written_anew() {
        let whole = with_entries("127.0.0.1 localhost\n", &names(&[("etcd-a", "10.0.0.1")]));
        for cut in 20..whole.len() {
            let torn = whole.get(..cut).unwrap();
            let again = with_entries(torn, &names(&[("etcd-a", "10.0.0.2")]));
            assert!(again.starts_with("127.0.0.1 localhost\n"), "{again}");
            assert_eq!(entries(&again), names(&[("etcd-a", "10.0.0.2")]));
        }
    }
}
