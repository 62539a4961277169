//! How a cluster stands to the controls of the CIS Kubernetes Benchmark, as a table, and how many of each result there are.

use super::health::one_line;
use super::table;
use fleet::{CIS_BENCHMARK, CisResult, CisRow};

/// All rows. `accepts`: whether a control may fail.
pub fn render(rows: &[CisRow], accepts: impl Fn(&CisRow) -> bool) -> String {
    let words = |row: &CisRow| match row.result {
        CisResult::Pass => "pass",
        CisResult::Fail if accepts(row) => "fails, accepted",
        CisResult::Fail => "FAIL",
        CisResult::NotKnown => "not known",
    };
    let cells = |row: &CisRow| {
        vec![
            row.number.to_owned(),
            words(row).to_owned(),
            row.title.to_owned(),
            one_line(&row.why),
        ]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let table = table::render(&["CONTROL", "RESULT", "WHAT", "WHY"], &cells);
    let count = |result| rows.iter().filter(|row| row.result == result).count();
    format!(
        "{table}\n{CIS_BENCHMARK}: {} pass, {} fail, {} are not known\n",
        count(CisResult::Pass),
        count(CisResult::Fail),
        count(CisResult::NotKnown)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_has_a_row_and_the_results_are_counted() {
        let row = |number, result, why: &str| CisRow {
            number,
            title: "mode of etcd's data folders",
            automated: true,
            result,
            why: why.to_owned(),
        };
        let rows = [
            row("1.1.11", CisResult::Pass, "700 (i-1)"),
            row("1.1.12", CisResult::Fail, "root:root (i-1)"),
            row("1.2.1", CisResult::Fail, "--anonymous-auth=true (i-1)"),
            row("3.1.1", CisResult::NotKnown, "look"),
        ];
        insta::assert_snapshot!(render(&rows, |row| row.number == "1.1.12"), @r"
        CONTROL   RESULT            WHAT                          WHY
        1.1.11    pass              mode of etcd's data folders   700 (i-1)
        1.1.12    fails, accepted   mode of etcd's data folders   root:root (i-1)
        1.2.1     FAIL              mode of etcd's data folders   --anonymous-auth=true (i-1)
        3.1.1     not known         mode of etcd's data folders   look

        CIS Kubernetes Benchmark 2.0: 1 pass, 2 fail, 1 are not known
        ");
    }
}
