//! The data for the script, as JSON.

use crate::gantt::{LEFT, LENGTH};
use crate::gantt_layout::GanttLayout;
use crate::markup_text::is_permitted;
use crate::simulation::Simulation;
use crate::workload_states::{FinalState, WorkloadHistory};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns the data of a simulation. It has no character that ends the element of a script.
pub(crate) fn script_data(
    simulation: &Simulation<'_>,
    histories: &[WorkloadHistory],
    listed: &[usize],
    layout: Option<&GanttLayout>,
) -> String {
    let queues = simulation.trace.cluster_queues.iter();
    let names: Vec<&str> = queues.map(|it| &*it.name).collect();
    let indices = names.iter().enumerate().map(|(at, name)| (*name, at));
    let indices: BTreeMap<&str, usize> = indices.collect();
    let rows = listed.iter().filter_map(|at| {
        let job = simulation.trace.jobs.get(*at)?;
        let history = histories.get(*at)?;
        let preemptors = history.preemptions.iter().map(|it| {
            // The chart needs the row of the preemptor; without a chart its name is enough.
            let by = match layout {
                Some(_) => json!(it.by),
                None => json!(simulation.trace.jobs.get(it.by).map(|it| &it.name)),
            };
            json!([it.at_s, by])
        });
        let preemptors: Vec<Value> = preemptors.collect();
        let state = FinalState::ALL.iter().position(|it| *it == history.state);
        let mut row = vec![
            json!(job.name),
            json!(indices.get(&*job.cluster_queue)),
            json!(job.priority),
            json!(job.arrival),
            json!(history.wait_s),
            json!(history.finished_at_s),
            json!(state),
            json!(history.admissions),
            json!(preemptors),
        ];
        if layout.is_some() {
            let intervals = history.intervals.iter();
            let intervals = intervals
                .flat_map(|it| [json!(it.state.index()), json!(it.from_s), json!(it.to_s)]);
            row.push(intervals.collect());
        }
        Some(Value::from(row))
    });
    let rows: Vec<Value> = rows.collect();
    let states: Vec<&str> = FinalState::ALL.iter().map(|it| it.as_str()).collect();
    let data = json!({
        "queues": names,
        "states": states,
        "rows": rows,
        "until": simulation.until_s(),
        "gantt": layout.map(gantt_data),
    });
    escaped(&data.to_string())
}

/// The places of rows, in tenths of a pixel.
fn gantt_data(layout: &GanttLayout) -> Value {
    let order = layout.groups.iter().flat_map(|it| &it.jobs);
    json!({
        "order": order.collect::<Vec<&usize>>(),
        "tops": layout.tops,
        "rowHeight": layout.row_height,
        "left": LEFT * 10,
        "length": LENGTH * 10,
    })
}

/// Escapes the characters that have a meaning in HTML, and those that it may not have; all of them are in strings of the
/// JSON.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        if matches!(char, '<' | '>' | '&') || !is_permitted(char) {
            // None of them is beyond 16 bits. A write into a string does not fail.
            let _ = write!(text, "\\u{:04x}", u32::from(char));
        } else {
            text.push(char);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!(["</script><!--<script>&amp;\u{2028}\u{7f}\u{ffff}\"", "a"]);
        let text = escaped(&value.to_string());
        assert!(
            !text.contains(['<', '>', '&', '\u{7f}', '\u{ffff}']),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
