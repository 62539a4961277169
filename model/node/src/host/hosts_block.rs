//! A block of lines in `/etc/hosts` that an agent owns. The rest of the file is not changed.

use serde::Serialize;

/// The block. The file is rewritten in place, because pods bind-mount it and would keep a renamed file's old text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostsBlock {
    /// Path of the file: `/etc/hosts`.
    pub path: String,
    /// Name of the agent that owns the block; part of its first and last line.
    pub keeper: String,
    /// Lines between the first and the last.
    pub lines: Vec<String>,
}

impl HostsBlock {
    fn marker_lines(&self) -> (String, String) {
        (
            format!("# Begin host entries managed by {}", self.keeper),
            format!("# End host entries managed by {}", self.keeper),
        )
    }

    /// The lines of this block in the text of a file; `None` if the file has no complete block.
    pub fn lines_in(&self, file: &str) -> Option<Vec<String>> {
        let (begin, end) = self.marker_lines();
        let mut lines = file.lines().skip_while(|line| *line != begin).skip(1);
        let mut found = Vec::new();
        loop {
            match lines.next()? {
                line if line == end => return Some(found),
                line => found.push(line.to_owned()),
            }
        }
    }

    /// The text of the file with this block replaced or appended. A block without a last line reaches to the end of the file: the
    /// instance died while writing it.
    pub fn insert_into(&self, file: &str) -> String {
        let (begin, end) = self.marker_lines();
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

    fn nodeup_block(lines: &[&str]) -> HostsBlock {
        HostsBlock {
            path: "/etc/hosts".into(),
            keeper: "nodeup".into(),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    #[test]
    fn what_others_wrote_stays_and_writing_twice_changes_nothing() {
        let before = "127.0.0.1 localhost\n# Begin host entries managed by protokube\n10.0.0.1 a\n# End host entries managed by protokube\n";
        let once = nodeup_block(&["127.0.0.1 api"]).insert_into(before);
        assert!(once.starts_with(before));
        assert_eq!(
            nodeup_block(&[]).lines_in(&once),
            Some(vec!["127.0.0.1 api".to_owned()])
        );
        assert_eq!(nodeup_block(&["127.0.0.1 api"]).insert_into(&once), once);
        assert!(
            nodeup_block(&["127.0.0.2 api"])
                .insert_into(&once)
                .starts_with(before)
        );
    }

    #[test]
    fn a_block_that_was_cut_short_is_not_believed_and_is_written_anew() {
        let whole = nodeup_block(&["127.0.0.1 api"]).insert_into("127.0.0.1 localhost\n");
        for cut in 0..whole.len() - 1 {
            let partial = &whole[..cut];
            let found = nodeup_block(&[]).lines_in(partial);
            assert!(found.is_none(), "{partial:?}");
        }
    }
}
