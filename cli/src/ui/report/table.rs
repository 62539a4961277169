//! Tables of the page, with the columns of the terminal's tables. On a narrow screen each row is a block, with the headers before the cells.

use super::html::{Html, element, plain, text, words};

/// A table. Every row has as many cells as there are headers; the first one names the row.
pub fn table(
    caption: &str,
    headers: &[&'static str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Html {
    let rows = rows.into_iter().map(|cells| {
        let cells = headers.iter().zip(cells).enumerate();
        // As blocks, rows and cells would lose their roles for those who listen to the page.
        row(cells.map(|(column, (header, said))| {
            let said = match said.as_str() {
                "" => "-",
                said => said,
            };
            let (name, role) = match column {
                0 => ("th", "rowheader"),
                _ => ("td", "cell"),
            };
            let label = ("data-label", *header);
            element(name, &[("role", role), label], [text(said)])
        }))
    });
    let heads = headers.iter();
    let heads = heads.map(|said| element("th", &[("role", "columnheader")], [text(said)]));
    let group = [("role", "rowgroup")];
    element(
        "table",
        &[("role", "table")],
        [
            words("caption", "hidden", caption),
            element("thead", &group, [row(heads)]),
            element("tbody", &group, rows),
        ],
    )
}

fn row(cells: impl IntoIterator<Item = Html>) -> Html {
    element("tr", &[("role", "row")], cells)
}

/// A list of sentences.
pub fn list(said: impl IntoIterator<Item = String>) -> Html {
    let items = said.into_iter();
    plain("ul", items.map(|said| plain("li", [text(&said)])))
}
