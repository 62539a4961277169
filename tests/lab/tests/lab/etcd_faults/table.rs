//! One line for each fault in a file that later sittings with the same seed add to, and a table of all of them by kind.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// What a fault cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub number: usize,
    pub kind: String,
    /// Kind of the fault that happened during the recovery.
    pub second: Option<String>,
    /// Longest time without an acknowledged write by the API's public name, in seconds.
    pub gap: f64,
    /// Seconds until all members were back.
    pub back: f64,
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = self.second.as_deref().unwrap_or("-");
        let (number, kind, gap, back) = (self.number, &self.kind, self.gap, self.back);
        write!(out, "{number} {kind} {second} {gap:.1} {back:.1}")
    }
}

fn parse(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let [number, kind, second, gap, back] = words.as_slice() else {
        return None;
    };
    Some(Line {
        number: number.parse().ok()?,
        kind: (*kind).to_owned(),
        second: (*second != "-").then(|| (*second).to_owned()),
        gap: gap.parse().ok()?,
        back: back.parse().ok()?,
    })
}

/// The file of a seed.
pub struct Table {
    path: PathBuf,
    file: File,
}

impl Table {
    /// `KCTL_LAB_TABLE` names the file; otherwise it is in the folder of reports.
    pub fn open(seed: u64) -> Result<Self> {
        let path = match std::env::var_os("KCTL_LAB_TABLE") {
            Some(named) => named.into(),
            None => std::env::temp_dir().join(format!("kctl-etcd-faults-{seed}.txt")),
        };
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
        eprintln!("KCTL_LAB_SEED={seed} KCTL_LAB_TABLE={}", path.display());
        Ok(Self { path, file })
    }

    pub fn add(&mut self, line: &Line) -> Result<()> {
        eprintln!("       {line}");
        writeln!(self.file, "{line}").context("writing the table")
    }

    pub fn describe(&self) -> Result<String> {
        let text = fs::read_to_string(&self.path)?;
        let parsed = text
            .lines()
            .map(|line| parse(line).with_context(|| line.to_owned()));
        Ok(describe_lines(&parsed.collect::<Result<Vec<_>>>()?))
    }
}

/// Of a fault that was repeated, the last line counts.
fn describe_lines(lines: &[Line]) -> String {
    let last: BTreeMap<usize, &Line> = lines.iter().map(|line| (line.number, line)).collect();
    let mut kinds: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in last.values() {
        kinds.entry(&line.kind).or_default().push(line);
        let pair = if line.second.is_some() {
            "(pairs)"
        } else {
            "(single)"
        };
        kinds.entry(pair).or_default().push(line);
    }
    let mut text = String::from(
        "| fault | times | seconds without writes: median, most | seconds until all members are back: median, most |\n|---|---|---|---|",
    );
    for (kind, of) in kinds {
        let (gap, longest_gap) = median_and_most(of.iter().map(|line| line.gap));
        let (back, longest) = median_and_most(of.iter().map(|line| line.back));
        text += &format!(
            "\n| {kind} | {} | {gap:.1}, {longest_gap:.1} | {back:.1}, {longest:.1} |",
            of.len()
        );
    }
    text
}

fn median_and_most(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    let of = |at: usize| all.get(at).copied().unwrap_or_default();
    (
        of(all.len().saturating_sub(1) / 2),
        of(all.len().saturating_sub(1)),
    )
}

#[test]
fn sittings_make_one_table() {
    let text = "0 power-one - 1.5 20.0\n1 etcd-killed power-one 3.0 40.0\n0 power-one - 2.5 30.0\n2 power-one - 9.0 10.0";
    let lines: Vec<Line> = text.lines().map(|line| parse(line).unwrap()).collect();
    let again: Vec<String> = lines.iter().map(Line::to_string).collect();
    assert_eq!(again.join("\n"), text);
    let table = describe_lines(&lines);
    assert!(
        table.contains("\n| power-one | 2 | 2.5, 9.0 | 10.0, 30.0 |"),
        "{table}"
    );
    assert!(
        table.contains("\n| (pairs) | 1 | 3.0, 3.0 | 40.0, 40.0 |"),
        "{table}"
    );
    assert_eq!(parse("3 power-one 1.0 2.0"), None);
}
