//! Tables in kubectl's style: upper-case headers, no borders, cells never cut.

use comfy_table::{Table, presets};
use node::terminal::is_terminal_control;

/// Renders a table. Every row must have as many cells as there are headers.
pub fn render(headers: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(headers.iter().copied());
    for row in rows {
        let cells = row
            .iter()
            // A cell is one line, so that its content cannot fake rows.
            .map(|cell| cell.replace(|c: char| c.is_control() || is_terminal_control(c), " "))
            .map(|cell| {
                if cell.is_empty() {
                    "-".to_owned()
                } else {
                    cell
                }
            });
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
    fn a_cell_is_one_line_whatever_is_in_it() {
        let rows = [vec!["a\nb\u{1b}[2J".to_owned(), "\u{202e}x".to_owned()]];
        assert_eq!(
            render(&["NAME", "VALUE"], &rows),
            "NAME      VALUE\na b [2J    x\n"
        );
    }

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
