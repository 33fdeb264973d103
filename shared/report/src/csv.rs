//! Tables for programs.

use crate::document::{Document, Table};

/// Every table of numbers behind a report, by file name.
pub fn files(document: &Document) -> Vec<(String, String)> {
    document.data.iter().map(|data| (format!("{}.csv", data.name), table(&data.table))).collect()
}

/// A table without its caption.
pub fn table(table: &Table) -> String {
    let mut text = String::new();
    for row in std::iter::once(&table.columns).chain(&table.rows) {
        for (at, cell) in row.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            push_quoted(&mut text, cell);
        }
        text.push('\n');
    }
    text
}

fn push_quoted(text: &mut String, cell: &str) {
    if cell.contains([',', '"', '\n', '\r']) {
        text.push('"');
        text.push_str(&cell.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut table = Table::new("", &["name", "value"]);
        table.push(vec!["a,b".to_owned(), "say \"hi\"".to_owned()]);
        table.push(vec!["plain".to_owned(), "1".to_owned()]);
        assert_eq!(super::table(&table), "name,value\n\"a,b\",\"say \"\"hi\"\"\"\nplain,1\n");
    }
}
