//! Aligned columns.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::paint::{Painted, dim};

/// What stands in a column.
type Cell = Painted<'static>;

/// Rows under headings, each column as wide as its widest cell.
pub(crate) struct Table {
    headings: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(headings: &'static [&'static str]) -> Self {
        Self { headings, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(cells.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn render(&self) -> String {
        let headings: Vec<Cell> = self.headings.iter().map(|heading| dim(*heading)).collect();
        let mut widths = vec![0; self.headings.len()];
        for row in std::iter::once(&headings).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.1.width());
            }
        }
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            for (at, (width, cell)) in widths.iter().zip(row).enumerate() {
                let is_last = at + 1 == row.len();
                let gap = if is_last { 0 } else { width.saturating_sub(cell.1.width()) + 2 };
                let _ = write!(text, "{cell}{:gap$}", "");
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::paint::plain;

    #[test]
    fn columns_are_as_wide_as_what_a_terminal_shows_of_their_widest_cell() {
        let mut table = Table::new(&["ID", "NAME"]);
        table.row([plain("世界"), plain("a")]);
        table.row([plain("b"), plain("long name")]);
        let text = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(text, "ID    NAME\n世界  a\nb     long name\n");
    }
}
