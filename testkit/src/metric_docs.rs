//! The metrics of a process beside those of docs/metrics.md.

use std::collections::BTreeSet;
use std::path::Path;

/// Name, type and meaning of a metric.
pub type MetricRow = [String; 3];

/// The metrics of a text in the format `OpenMetrics`, with the names of their series.
#[must_use]
pub fn exposed_metrics(text: &str) -> BTreeSet<MetricRow> {
    let mut kinds = text.lines().filter_map(|it| it.strip_prefix("# TYPE "));
    let helps = text.lines().filter_map(|it| it.strip_prefix("# HELP "));
    helps
        .map(|help| {
            let (name, meaning) = help.split_once(' ').unwrap();
            let kind = kinds
                .find_map(|it| it.strip_prefix(name)?.strip_prefix(' '))
                .unwrap();
            let suffix = if kind == "counter" { "_total" } else { "" };
            [
                format!("{name}{suffix}"),
                kind.to_owned(),
                meaning.to_owned(),
            ]
        })
        .collect()
}

/// The rows of docs/metrics.md with names that begin with `prefix` and an underscore, without the column of labels.
#[must_use]
pub fn documented_metrics(prefix: &str) -> BTreeSet<MetricRow> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let page = std::fs::read_to_string(path).unwrap();
    let start = format!("| `{prefix}_");
    let rows = page.lines().filter(|it| it.starts_with(&start));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, kind, _, meaning, _] = cells[..] else {
            panic!("{row}");
        };
        [name.trim_matches('`'), kind, meaning].map(str::to_owned)
    })
    .collect()
}
