//! Reads the tables of `docs/fields.md`.

use crate::root;
use std::fs;

/// The section whose rows name a kind (or `label`) and a field, and the rule that warns about the field.
pub(crate) const SECTION_WITHOUT_EFFECT: &str = "Fields without effect";

/// A row of a table.
#[derive(Debug)]
pub(crate) struct Row {
    pub section: String,
    /// The field or key.
    pub name: String,
    pub effect: String,
    /// The references to tests, or to the rule that warns.
    pub references: Vec<String>,
}

/// The rows of all tables, in order.
pub(crate) fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/fields.md")).unwrap();
    let mut section = String::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut section);
        } else if line.starts_with("| `") {
            rows.push(row(&section, line));
        }
    }
    assert!(rows.len() > 100, "{} rows", rows.len());
    rows
}

fn row(section: &str, line: &str) -> Row {
    let cells = line.trim_matches('|').split(" | ").map(str::trim);
    let cells: Vec<&str> = cells.collect();
    let [name, effect, references] = cells.as_slice() else {
        panic!("not three cells: {line}");
    };
    Row {
        section: section.to_owned(),
        name: name.trim_matches('`').to_owned(),
        effect: (*effect).to_owned(),
        references: references.split("; ").map(str::to_owned).collect(),
    }
}
