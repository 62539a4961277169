//! Stages: the progress of user data, nodeup and protokube on the console, one JSON object per line.

use serde::Deserialize;

/// One line. Programs add fields.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stage {
    /// Time in RFC 3339.
    pub time: String,
    /// Program that reported the stage: `user-data` or `nodeup`.
    pub source: String,
    /// Name of the stage: `fetch`, `verify`, ...
    pub stage: String,
    /// Status: `started`, `finished` or `failed`.
    pub status: String,
    pub detail: String,
}

impl Stage {
    /// For example `nodeup fetch finished`.
    pub fn to_words(&self) -> String {
        format!("{} {} {}", self.source, self.stage, self.status)
    }
}

/// The stages in a console's text, in order. Lines may have a prefix by journald; other lines are ignored.
pub fn parse_stages(console: &[u8]) -> Vec<Stage> {
    let text = String::from_utf8_lossy(console);
    let objects = text.lines().filter_map(|line| line.get(line.find('{')?..));
    objects
        .filter_map(|object| serde_json::from_str(object.trim_end()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_found_between_other_lines() {
        let console = "\
            [    1.2] systemd[1]: Started {nothing}.\r\n\
            {\"time\":\"t1\",\"source\":\"user-data\",\"stage\":\"fetch\",\"status\":\"started\",\"detail\":\"\"}\r\n\
            [16509.5] nodeup[292]: {\"detail\":\"no\",\"seconds\":0.0,\"source\":\"nodeup\",\"stage\":\"build\",\"status\":\"failed\",\"time\":\"t2\"}\n\
            {\"time\":\"t3\",\"source\":\"user-d";
        let found = parse_stages(console.as_bytes());
        let words: Vec<String> = found.iter().map(Stage::to_words).collect();
        assert_eq!(words, ["user-data fetch started", "nodeup build failed"]);
        assert_eq!(found[1].detail, "no");
    }
}
