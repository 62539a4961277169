//! Tables as kubectl prints them: upper-case headers, no borders, never cut.

use comfy_table::{Table, presets};

/// A table's text; every row has as many cells as there are headers.
pub fn render(headers: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(headers.iter().copied());
    for row in rows {
        let cells = row
            .iter()
            .map(|cell| if cell.is_empty() { "-" } else { cell });
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn columns_line_up_and_nothing_is_cut() {
        let rows = [
            vec!["a".to_owned(), "x".repeat(200)],
            vec!["bcd".to_owned(), String::new()],
        ];
        let expected = format!("NAME   VALUE\na      {}\nbcd    -\n", "x".repeat(200));
        assert_eq!(render(&["NAME", "VALUE"], &rows), expected);
    }
}
