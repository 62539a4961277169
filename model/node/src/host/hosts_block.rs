//! A block of lines in `/etc/hosts` that is ours; the rest of the file is others'.

use serde::Serialize;

/// The block. The file is rewritten in place: pods mount it, and a renamed file would leave them with the old one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostsBlock {
    /// `/etc/hosts`.
    pub path: String,
    /// Who keeps the block; in its first and last line.
    pub keeper: String,
    /// Its lines.
    pub lines: Vec<String>,
}

impl HostsBlock {
    fn marks(&self) -> (String, String) {
        (
            format!("# Begin host entries managed by {}", self.keeper),
            format!("# End host entries managed by {}", self.keeper),
        )
    }

    /// The lines that a file has for this block; `None` if it has no whole block.
    pub fn lines_in(&self, file: &str) -> Option<Vec<String>> {
        let (begin, end) = self.marks();
        let mut lines = file.lines().skip_while(|line| *line != begin).skip(1);
        let mut found = Vec::new();
        loop {
            match lines.next()? {
                line if line == end => return Some(found),
                line => found.push(line.to_owned()),
            }
        }
    }

    /// The file with this block in the place of the one it has, or at its end. A block whose end is missing ends where
    /// the file does: it was being written when the machine died.
    pub fn written_into(&self, file: &str) -> String {
        let (begin, end) = self.marks();
        let mut kept: Vec<&str> = Vec::new();
        let mut inside = false;
        for line in file.lines() {
            if line == begin {
                inside = true;
            } else if inside && line == end {
                inside = false;
            } else if !inside {
                kept.push(line);
            }
        }
        let ours = self.lines.iter().map(String::as_str);
        let all = kept
            .into_iter()
            .chain([begin.as_str()])
            .chain(ours)
            .chain([end.as_str()]);
        all.flat_map(|line| [line, "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::HostsBlock;

    fn block(lines: &[&str]) -> HostsBlock {
        HostsBlock {
            path: "/etc/hosts".into(),
            keeper: "nodeup".into(),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    #[test]
    fn what_others_wrote_stays_and_writing_twice_changes_nothing() {
        let before = "127.0.0.1 localhost\n# Begin host entries managed by protokube\n10.0.0.1 a\n# End host entries managed by protokube\n";
        let once = block(&["127.0.0.1 api"]).written_into(before);
        assert!(once.starts_with(before));
        assert_eq!(
            block(&[]).lines_in(&once),
            Some(vec!["127.0.0.1 api".to_owned()])
        );
        assert_eq!(block(&["127.0.0.1 api"]).written_into(&once), once);
        assert!(
            block(&["127.0.0.2 api"])
                .written_into(&once)
                .starts_with(before)
        );
    }

    #[test]
    fn a_block_that_was_cut_short_is_not_believed_and_is_written_anew() {
        let whole = block(&["127.0.0.1 api"]).written_into("127.0.0.1 localhost\n");
        for cut in 0..whole.len() - 1 {
            let partial = &whole[..cut];
            let found = block(&[]).lines_in(partial);
            assert!(found.is_none(), "{partial:?}");
        }
    }
}
