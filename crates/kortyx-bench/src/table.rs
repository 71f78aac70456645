//! The rows as people read them, and as programs do.

use serde_json::{Value, json};

use crate::row::Row;

const HEADINGS: [&str; 6] = ["measure", "value", "reference", "ratio", "target", "ok?"];

/// The version of the JSON form.
const VERSION: u32 = 1;

/// The rows in columns under headings; numbers stand to the right.
pub(crate) fn render(rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let widths = widths(&lines);
    let rule = widths.map(|width| "─".repeat(width));
    lines.insert(1, rule);
    let mut text = String::new();
    for line in &lines {
        text.push_str(&aligned(line, widths));
        text.push('\n');
    }
    text
}

/// The rows with their verdicts as one JSON object.
pub(crate) fn json(rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows.iter().map(with_verdict).collect();
    json!({ "v": VERSION, "rows": rows })
}

fn with_verdict(row: &Row) -> Value {
    let mut value = serde_json::to_value(row).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("ok".to_owned(), json!(row.is_ok()));
    }
    value
}

fn widths(lines: &[[String; 6]]) -> [usize; 6] {
    let mut widths = [0; 6];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

fn aligned(line: &[String; 6], widths: [usize; 6]) -> String {
    let cells = line.iter().zip(widths).enumerate();
    let cells = cells.map(|(column, (cell, width))| match column {
        0 | 5 => format!("{cell:<width$}"),
        _ => format!("{cell:>width$}"),
    });
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{number::Unit, row::Target};

    fn rows() -> Vec<Row> {
        vec![
            Row::new("cycles", 61_234.0, Unit::PerSecond).target(Target::AtLeast(50_000.0)),
            Row::new("a page", 120.0, Unit::Micros).against(50.0, 2.4).target(Target::AtMost(2.0)),
            Row::new("engine", 4.25, Unit::Micros),
        ]
    }

    #[test]
    fn rows_stand_in_columns_under_a_heading() {
        let table = "\
measure     value  reference  ratio      target  ok?
───────  ────────  ─────────  ─────  ──────────  ──────
cycles   61,234/s                    ≥ 50,000/s  ok
a page     120 µs      50 µs   2.40         ≤ 2  MISSED
engine    4.25 µs
";
        assert_eq!(render(&rows()), table);
    }

    #[test]
    fn the_json_form_carries_the_verdicts() {
        let value = json(&rows());

        let verdicts: Vec<&Value> = value["rows"].as_array().unwrap().iter().map(|row| &row["ok"]).collect();
        assert_eq!(verdicts, [&json!(true), &json!(false), &json!(null)]);
        assert_eq!(value["rows"][1]["unit"], "µs");
        assert_eq!(value["v"], 1);
    }
}
