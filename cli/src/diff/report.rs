//! The report of a comparison, as text and as Markdown.

use super::findings::{FindingChanges, QueueFinding};
use lockkeeper_explain::{Affected, Comparison};
use serde::Serialize;
use std::fmt::Write;

/// The most workloads or findings of an effect in the text.
const SHOWN_MAX: usize = 20;

/// The effect of a change on workloads, and on the findings of rules.
#[derive(Debug, Default, Serialize)]
pub(super) struct DiffReport {
    #[serde(flatten)]
    pub(super) workloads: Comparison,
    #[serde(flatten)]
    pub(super) findings: FindingChanges,
}

impl DiffReport {
    /// Whether the change has no effect.
    pub(super) fn is_empty(&self) -> bool {
        self.workloads.is_empty() && self.findings.is_empty()
    }

    /// Whether the change harms workloads, or may.
    pub(super) fn is_harmful(&self) -> bool {
        self.workloads.is_harmful() || self.findings.is_harmful()
    }

    /// The lines about findings, each with its findings.
    fn finding_effects(&self) -> [(String, Vec<&QueueFinding>); 3] {
        let new = self.findings.new_findings.iter();
        let (loops, others): (Vec<_>, Vec<_>) = new.partition(|it| it.is_preemption_loop());
        let resolved: Vec<&QueueFinding> = self.findings.resolved_findings.iter().collect();
        let line = |one: &str, several: &str, of: &[_]| count(one, several, of.len());
        [
            (
                line(
                    "preemption loop becomes possible",
                    "preemption loops become possible",
                    &loops,
                ),
                loops,
            ),
            (line("new finding", "new findings", &others), others),
            (
                line("finding is resolved", "findings are resolved", &resolved),
                resolved,
            ),
        ]
    }
}

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
pub(super) fn text_report(report: &DiffReport) -> String {
    let comparison = &report.workloads;
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
    for (line, findings) in report.finding_effects() {
        if findings.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{line}");
        for it in findings.iter().take(SHOWN_MAX) {
            let _ = writeln!(text, "  {}", finding_line(it, ""));
            for step in &it.steps {
                let _ = writeln!(text, "    {step}");
            }
        }
        let more = findings.len().saturating_sub(SHOWN_MAX);
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

/// The report as Markdown: the effects, and the workloads and findings folded.
pub(super) fn markdown_report(report: &DiffReport) -> String {
    let comparison = &report.workloads;
    let mut text = String::from("### Effect on workloads\n\n");
    if report.is_empty() {
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
    let mut finding_details = String::new();
    for (line, findings) in report.finding_effects() {
        if findings.is_empty() {
            continue;
        }
        let _ = writeln!(text, "- {line}");
        let _ = writeln!(finding_details, "{line}:\n");
        for it in findings {
            let _ = writeln!(finding_details, "- {}", finding_line(it, "`"));
            for step in &it.steps {
                let _ = writeln!(finding_details, "  - {step}");
            }
        }
    }
    for line in notes(comparison) {
        let _ = writeln!(text, "- {line}");
    }
    for (summary, details) in [("Workloads", details), ("Findings", finding_details)] {
        if !details.is_empty() {
            let _ = write!(
                text,
                "\n<details><summary>{summary}</summary>\n\n{details}\n</details>\n"
            );
        }
    }
    text
}

/// A finding with its object; `quote` surrounds the name.
fn finding_line(it: &QueueFinding, quote: &str) -> String {
    let (severity, rule, object) = (it.severity, &it.rule, &it.object);
    let namespace = match object.namespace.as_str() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let name = format!("{quote}{namespace}{}{quote}", object.name);
    format!(
        "{severity} {rule} of {} {name}: {}",
        object.kind, it.message
    )
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
    use super::{DiffReport, markdown_report, text_report};
    use crate::diff::findings::{CheckedName, FindingChanges, QueueFinding};
    use lockkeeper_explain::{Affected, Comparison};

    fn affected(at: usize) -> Affected {
        Affected {
            workload: format!("ns/w{at}"),
            job: Some(format!("Job/j{at}")),
            cluster_queue: "q".to_owned(),
            preemptor: (at == 0).then(|| "ns/p".to_owned()),
        }
    }

    fn finding(rule: &str, severity: &'static str, steps: &[&str]) -> QueueFinding {
        QueueFinding {
            rule: rule.to_owned(),
            severity,
            object: CheckedName {
                kind: "LocalQueue".to_owned(),
                namespace: "ns".to_owned(),
                name: "main".to_owned(),
                ..CheckedName::default()
            },
            field: "spec.a".to_owned(),
            message: "spec.a: Forbidden: b".to_owned(),
            steps: steps.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn reports_name_workloads_and_stay_short() {
        let workloads = Comparison {
            preempted: vec![affected(0)],
            starts: (1..26).map(affected).collect(),
            is_incomplete: true,
            ..Comparison::default()
        };
        let report = DiffReport {
            workloads,
            ..DiffReport::default()
        };
        let text = text_report(&report);
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
        let markdown = markdown_report(&report);
        let visible = markdown.split("<details>").next().unwrap();
        assert!(visible.lines().count() <= 30, "{visible}");
        assert!(
            markdown
                .contains("- `ns/w25` (`Job/j25`) in ClusterQueue `q`: pending workload starts"),
            "{markdown}"
        );
        assert_eq!(
            text_report(&DiffReport::default()),
            "the change affects no workload\n"
        );
    }

    #[test]
    fn reports_have_new_and_resolved_findings() {
        let findings = FindingChanges {
            new_findings: vec![
                finding("CQ002", "warning", &[]),
                finding("CQ024", "warning", &["1. a preempts b", "2. b preempts a"]),
            ],
            resolved_findings: vec![finding("CQ001", "error", &[])],
        };
        let report = DiffReport {
            findings,
            ..DiffReport::default()
        };
        let expected = "\
1 preemption loop becomes possible
  warning CQ024 of LocalQueue ns/main: spec.a: Forbidden: b
    1. a preempts b
    2. b preempts a
1 new finding
  warning CQ002 of LocalQueue ns/main: spec.a: Forbidden: b
1 finding is resolved
  error CQ001 of LocalQueue ns/main: spec.a: Forbidden: b
";
        assert_eq!(text_report(&report), expected);
        let markdown = markdown_report(&report);
        let (visible, folded) = markdown.split_once("<details>").unwrap();
        assert!(visible.contains("- 1 finding is resolved\n"), "{visible}");
        let line =
            "- warning CQ024 of LocalQueue `ns/main`: spec.a: Forbidden: b\n  - 1. a preempts b\n";
        assert!(folded.contains(line), "{folded}");
    }

    #[test]
    fn new_errors_and_preemption_loops_are_harm() {
        for (rule, severity, is_harmful) in [
            ("CQ001", "error", true),
            ("CQ024", "warning", true),
            ("CQ001", "warning", false),
        ] {
            let added = FindingChanges {
                new_findings: vec![finding(rule, severity, &[])],
                ..FindingChanges::default()
            };
            assert_eq!(added.is_harmful(), is_harmful, "{rule} {severity}");
            let resolved = FindingChanges {
                resolved_findings: added.new_findings,
                ..FindingChanges::default()
            };
            assert!(!resolved.is_harmful() && !resolved.is_empty());
        }
    }
}
