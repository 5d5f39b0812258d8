//! The report of a comparison, as text and as Markdown.

use lockkeeper_explain::{Affected, Comparison};
use std::fmt::Write;

/// The most workloads of an effect in the text.
const SHOWN_MAX: usize = 20;

/// A kind of effect: the sentence for one workload, that for several, and the workloads.
type Effect<'a> = (&'static str, &'static str, &'a [Affected]);

fn effects(of: &Comparison) -> [Effect<'_>; 8] {
    [
        (
            "running workload is preempted",
            "running workloads are preempted",
            &of.preempted,
        ),
        (
            "workload is no longer queued",
            "workloads are no longer queued",
            &of.not_queued,
        ),
        (
            "pending workload no longer starts",
            "pending workloads no longer start",
            &of.no_longer_starts,
        ),
        (
            "running workload may lose quota: its ClusterQueue exceeds its nominal quota",
            "running workloads may lose quota: their ClusterQueues exceed their nominal quota",
            &of.reclaimable,
        ),
        (
            "pending workload starts",
            "pending workloads start",
            &of.starts,
        ),
        (
            "running workload is no longer preempted",
            "running workloads are no longer preempted",
            &of.no_longer_preempted,
        ),
        (
            "running workload is within the nominal quota of its ClusterQueue",
            "running workloads are within the nominal quota of their ClusterQueues",
            &of.no_longer_reclaimable,
        ),
        ("workload gets a queue", "workloads get a queue", &of.queued),
    ]
}

/// The report as text.
pub(super) fn text_report(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (one, several, workloads) in effects(comparison) {
        if workloads.is_empty() {
            continue;
        }
        // Writing to a String does not fail.
        let _ = writeln!(text, "{}", count(one, several, workloads.len()));
        for it in workloads.iter().take(SHOWN_MAX) {
            let _ = writeln!(text, "  {}", line(it, ""));
        }
        let more = workloads.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            let _ = writeln!(text, "  {more} more");
        }
    }
    for line in notes(comparison) {
        let _ = writeln!(text, "{line}");
    }
    if text.is_empty() {
        text.push_str("the change affects no workload\n");
    }
    text
}

/// The report as Markdown: a table of effects, and the workloads folded.
pub(super) fn markdown_report(comparison: &Comparison) -> String {
    let mut text = String::from("### Effect on workloads\n\n");
    if comparison.is_empty() {
        text.push_str("The change affects no workload.\n");
        return text;
    }
    let mut details = String::new();
    for (one, several, workloads) in effects(comparison) {
        if workloads.is_empty() {
            continue;
        }
        let _ = writeln!(text, "- {}", count(one, several, workloads.len()));
        for it in workloads {
            let _ = writeln!(details, "- {}: {one}", line(it, "`"));
        }
    }
    for line in notes(comparison) {
        let _ = writeln!(text, "- {line}");
    }
    if !details.is_empty() {
        let _ = write!(
            text,
            "\n<details><summary>Workloads</summary>\n\n{details}\n</details>\n"
        );
    }
    text
}

fn count(one: &str, several: &str, number: usize) -> String {
    let noun = if number == 1 { one } else { several };
    format!("{number} {noun}")
}

/// A workload with its job, ClusterQueue and preemptor; `quote` surrounds names.
fn line(it: &Affected, quote: &str) -> String {
    let job = it
        .job
        .as_deref()
        .map(|job| format!(" ({quote}{job}{quote})"))
        .unwrap_or_default();
    let preemptor = it
        .preemptor
        .as_deref()
        .map(|it| format!(", preempted by {quote}{it}{quote}"));
    let queue = match it.cluster_queue.as_str() {
        "" => String::new(),
        queue => format!(" in ClusterQueue {quote}{queue}{quote}"),
    };
    format!(
        "{quote}{}{quote}{job}{queue}{}",
        it.workload,
        preemptor.unwrap_or_default()
    )
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let invalid = comparison
        .invalid
        .iter()
        .map(|it| format!("invalid after the change: {it}"));
    let mut notes: Vec<String> = invalid.collect();
    if comparison.is_incomplete {
        notes.push(
            "the cycles do not end, for example in a preemption loop; lockkeeper check reports the policies that allow one (CQ024)"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::{markdown_report, text_report};
    use lockkeeper_explain::{Affected, Comparison};

    #[test]
    fn reports_name_workloads_and_stay_short() {
        let affected = |at: usize| Affected {
            workload: format!("ns/w{at}"),
            job: Some(format!("Job/j{at}")),
            cluster_queue: "q".to_owned(),
            preemptor: (at == 0).then(|| "ns/p".to_owned()),
        };
        let comparison = Comparison {
            preempted: vec![affected(0)],
            starts: (1..26).map(affected).collect(),
            is_incomplete: true,
            ..Comparison::default()
        };
        let text = text_report(&comparison);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "1 running workload is preempted",
                "  ns/w0 (Job/j0) in ClusterQueue q, preempted by ns/p",
                "25 pending workloads start",
            ]
        );
        assert_eq!(lines[23], "  5 more");
        let markdown = markdown_report(&comparison);
        let visible = markdown.split("<details>").next().unwrap();
        assert!(visible.lines().count() <= 30, "{visible}");
        assert!(
            markdown
                .contains("- `ns/w25` (`Job/j25`) in ClusterQueue `q`: pending workload starts"),
            "{markdown}"
        );
        assert_eq!(
            text_report(&Comparison::default()),
            "the change affects no workload\n"
        );
    }
}
