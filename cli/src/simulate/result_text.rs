//! The results of simulations as text, JSON, CSV and Markdown.

use super::comparison::Comparison;
use super::measures::{Measure, MeasureKey, measures};
use super::simulated::Simulated;
use crate::report_format::to_table;
use anyhow::{Error, anyhow};
use clap::ValueEnum;
use lockkeeper_simulate::timeline::{
    Assumption, GroupMetrics, JobOutcome, Metrics, NodeMetrics, TimelineRecord, event_loop,
    write_summary,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The format of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Text for people
    Human,
    /// All values, jobs and events
    Json,
    /// One row for each measure
    Csv,
    /// Tables with one column for each simulation
    Markdown,
}

/// Where results go while simulations end.
pub(crate) struct ResultText {
    output: Output,
    /// Text or JSON of the simulations so far. One buffer, because JSON of many jobs is large.
    text: Vec<u8>,
    /// By simulation, for CSV and Markdown.
    measured: Vec<(Title, Vec<Measure>)>,
}

/// The trace and the configuration of a simulation.
#[derive(Clone, Debug)]
struct Title {
    trace: String,
    config: String,
}

/// A simulation as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SimulationRecord<'a> {
    id: &'a str,
    config: Option<&'a str>,
    #[serde(flatten)]
    timeline: TimelineRecord<'a>,
    metrics: &'a Metrics,
    assumptions: &'a [Assumption],
    /// The last events of a livelock or a loop are those that repeat.
    repeated_events: usize,
}

impl ResultText {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            output,
            text: Vec::new(),
            measured: Vec::new(),
        }
    }

    /// Adds the result of a simulation.
    pub(crate) fn add(&mut self, simulated: &Simulated<'_>) -> Result<(), Error> {
        match self.output {
            Output::Human => {
                if !self.text.is_empty() {
                    self.text.push(b'\n');
                }
                self.text.extend(summary(simulated)?.into_bytes());
            }
            Output::Json => self.add_json(&SimulationRecord {
                id: simulated.id,
                config: simulated.config,
                timeline: TimelineRecord {
                    trace: &simulated.trace,
                    timeline: &simulated.timeline,
                },
                metrics: &simulated.metrics,
                assumptions: &simulated.trace.assumptions,
                repeated_events: event_loop(&simulated.timeline).len(),
            })?,
            Output::Csv | Output::Markdown => {
                let title = Title {
                    trace: simulated.id.to_owned(),
                    config: simulated.config.unwrap_or_default().to_owned(),
                };
                let measures = measures(&simulated.trace, &simulated.timeline, &simulated.metrics);
                self.measured.push((title, measures));
            }
        }
        Ok(())
    }

    fn add_json(&mut self, record: &SimulationRecord<'_>) -> Result<(), Error> {
        let start: &[u8] = if self.text.is_empty() {
            b"{\"simulations\": [\n"
        } else {
            b",\n"
        };
        self.text.extend_from_slice(start);
        Ok(serde_json::to_writer_pretty(&mut self.text, record)?)
    }

    /// Returns the text of all results.
    pub(crate) fn finish(mut self, comparisons: &[Comparison<'_>]) -> Result<Vec<u8>, Error> {
        match self.output {
            Output::Human => {
                for comparison in comparisons {
                    let mut text = String::from("\n");
                    write_comparison(&mut text, comparison)?;
                    self.text.extend(text.into_bytes());
                }
                Ok(self.text)
            }
            Output::Json => {
                self.text.extend_from_slice(b"\n],\n\"comparisons\": ");
                serde_json::to_writer_pretty(&mut self.text, comparisons)?;
                self.text.extend_from_slice(b"}\n");
                Ok(self.text)
            }
            Output::Csv => csv_text(&self.measured, comparisons),
            Output::Markdown => Ok(markdown_text(&self.measured, comparisons)?.into_bytes()),
        }
    }
}

fn summary(simulated: &Simulated<'_>) -> Result<String, Error> {
    let mut text = simulated.title();
    text.push('\n');
    write_summary(&mut text, &simulated.trace, &simulated.timeline)?;
    let metrics = &simulated.metrics;
    if !metrics.nodes.is_empty() {
        text.push('\n');
        text.push_str(&node_table(&metrics.nodes)?);
    }
    text.push('\n');
    text.push_str(&group_table("queue", &metrics.queues)?);
    text.push('\n');
    text.push_str(&group_table("priority", &metrics.priorities)?);
    if simulated.timeline.stats.pods_ready.is_some() {
        text.push('\n');
        text.push_str(&pods_ready_table(&metrics.queues)?);
    }
    writeln!(text)?;
    writeln!(
        text,
        "  Jain's index of dominant shares  {}",
        metrics.fairness.jain_index
    )?;
    let repeated_preemptions = metrics.repeated_preemptions.repeatedly_preempted_jobs;
    writeln!(
        text,
        "  jobs preempted more than once    {repeated_preemptions}"
    )?;
    if !simulated.trace.assumptions.is_empty() {
        writeln!(text, "\n  assumptions")?;
        for assumption in &simulated.trace.assumptions {
            writeln!(text, "  {:>9}  {}", assumption.count, assumption.text)?;
        }
    }
    Ok(text)
}

fn group_table(kind: &str, groups: &[GroupMetrics]) -> Result<String, Error> {
    let header = [
        kind,
        "jobs",
        "finished",
        "preemptions",
        "lost",
        "wait p50",
        "wait p95",
        "slowdown p50",
        "slowdown p95",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(groups.iter().map(|group| {
        [
            group.name.clone(),
            group.jobs.to_string(),
            group.finished.to_string(),
            group.preemptions.to_string(),
            format!("{} s", group.lost_seconds),
            format!("{} s", group.wait.p50),
            format!("{} s", group.wait.p95),
            group.slowdown.p50.to_string(),
            group.slowdown.p95.to_string(),
        ]
    }));
    indented_table(&rows)
}

fn pods_ready_table(queues: &[GroupMetrics]) -> Result<String, Error> {
    let header = ["queue", "evictions", "deactivated"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(queues.iter().map(|group| {
        let pods_ready = group.pods_ready.unwrap_or_default();
        [
            group.name.clone(),
            pods_ready.evictions.to_string(),
            pods_ready.deactivated.to_string(),
        ]
    }));
    indented_table(&rows)
}

fn node_table(nodes: &[NodeMetrics]) -> Result<String, Error> {
    let header = ["nodes", "utilization", "peak"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(nodes.iter().map(|it| {
        let utilization = it.utilization;
        let utilization = utilization.map(|it| format!("{:.1} %", it * 100.0));
        [
            it.resource.clone(),
            utilization.unwrap_or_else(|| "-".to_owned()),
            it.peak.to_string(),
        ]
    }));
    indented_table(&rows)
}

fn indented_table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> Result<String, Error> {
    let table = to_table(rows)?;
    let lines = table.lines().flat_map(|it| ["  ", it, "\n"]);
    Ok(lines.collect())
}

fn write_comparison(text: &mut String, comparison: &Comparison<'_>) -> Result<(), Error> {
    writeln!(
        text,
        "{}: most affected jobs, {} against {}",
        comparison.trace, comparison.second, comparison.first
    )?;
    if comparison.affected.is_empty() {
        writeln!(text, "  no job waits or finishes differently")?;
    }
    for affected in &comparison.affected {
        let job = &affected.job;
        writeln!(
            text,
            "  {}: wait {} instead of {}, end {} instead of {}, preemptions {} instead of {}",
            job.name,
            time_text(job.second.wait),
            time_text(job.first.wait),
            time_text(job.second.finish),
            time_text(job.first.finish),
            job.second.preemptions,
            job.first.preemptions,
        )?;
        for line in affected.decision.iter().flat_map(|it| it.lines()) {
            writeln!(text, "    {line}")?;
        }
    }
    Ok(())
}

fn time_text(seconds: Option<i64>) -> String {
    seconds.map_or_else(|| "never".to_owned(), |it| format!("{it} s"))
}

const CSV_HEADER: [&str; 8] = [
    "trace", "config", "scope", "name", "flavor", "resource", "measure", "value",
];

fn csv_text(
    measured: &[(Title, Vec<Measure>)],
    comparisons: &[Comparison<'_>],
) -> Result<Vec<u8>, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(CSV_HEADER)?;
    for (title, measures) in measured {
        for Measure { key, value } in measures {
            writer.write_record([
                &title.trace,
                &title.config,
                key.scope,
                &key.name,
                &key.flavor,
                &key.resource,
                key.measure,
                value,
            ])?;
        }
    }
    for comparison in comparisons {
        for affected in &comparison.affected {
            let sides = [
                (comparison.first, &affected.job.first),
                (comparison.second, &affected.job.second),
            ];
            for (config, outcome) in sides {
                for (measure, value) in outcome_values(outcome) {
                    let name = &*affected.job.name;
                    let trace = comparison.trace;
                    let row = [trace, config, "affected", name, "", "", measure, &value];
                    writer.write_record(row)?;
                }
            }
        }
    }
    writer.into_inner().map_err(|error| anyhow!("{error}"))
}

fn outcome_values(outcome: &JobOutcome) -> [(&'static str, String); 3] {
    let text = |seconds: Option<i64>| seconds.map_or_else(String::new, |it| it.to_string());
    [
        ("wait_seconds", text(outcome.wait)),
        ("finish_seconds", text(outcome.finish)),
        ("preemptions", outcome.preemptions.to_string()),
    ]
}

/// The scopes and their headings, in order.
const SCOPES: [(&str, &str); 9] = [
    ("total", "All jobs"),
    ("eviction", "Evictions by reason"),
    ("queue", "By ClusterQueue"),
    ("priority", "By priority"),
    ("quota", "By quota"),
    ("flavor", "By flavor"),
    ("resource", "By resource"),
    ("share", "Shares"),
    ("assumption", "Assumptions"),
];

fn markdown_text(
    measured: &[(Title, Vec<Measure>)],
    comparisons: &[Comparison<'_>],
) -> Result<String, Error> {
    let values: Vec<BTreeMap<&MeasureKey, &str>> = measured
        .iter()
        .map(|(_, measures)| measures.iter().map(|it| (&it.key, &*it.value)).collect())
        .collect();
    let titles = measured.iter().map(|(title, _)| {
        let comma = if title.config.is_empty() { "" } else { ", " };
        escape(&format!("{}{comma}{}", title.trace, title.config))
    });
    let titles: Vec<String> = titles.collect();
    let mut text = String::from("# Simulations\n");
    for (scope, heading) in SCOPES {
        let keys = ordered_keys(measured, scope);
        if keys.is_empty() {
            continue;
        }
        writeln!(text, "\n## {heading}\n")?;
        writeln!(text, "| measure | {} |", titles.join(" | "))?;
        writeln!(text, "| --- |{}", " ---: |".repeat(titles.len()))?;
        for key in keys {
            let names = [&key.name, &key.flavor, &key.resource];
            let names = names.into_iter().filter(|it| !it.is_empty());
            let names: Vec<String> = names.map(|it| escape(it)).collect();
            let colon = if names.is_empty() { "" } else { ": " };
            write!(text, "| {}{colon}{} |", names.join(", "), key.measure)?;
            for values in &values {
                let value = values.get(key).copied().unwrap_or_default();
                write!(text, " {} |", escape(value))?;
            }
            text.push('\n');
        }
    }
    for comparison in comparisons {
        write_markdown_comparison(&mut text, comparison)?;
    }
    Ok(text)
}

/// The keys of a scope in all simulations, each once, in the order of their first occurrence.
fn ordered_keys<'a>(measured: &'a [(Title, Vec<Measure>)], scope: &str) -> Vec<&'a MeasureKey> {
    let mut known = BTreeSet::new();
    let keys = measured.iter().flat_map(|(_, measures)| measures);
    let keys = keys.map(|it| &it.key).filter(|it| it.scope == scope);
    keys.filter(|key| known.insert(*key)).collect()
}

fn write_markdown_comparison(text: &mut String, comparison: &Comparison<'_>) -> Result<(), Error> {
    writeln!(
        text,
        "\n## {}: most affected jobs, {} against {}\n",
        escape(comparison.trace),
        escape(comparison.second),
        escape(comparison.first)
    )?;
    text.push_str("| job | wait | instead of | end | instead of | preemptions | instead of |\n");
    text.push_str("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for affected in &comparison.affected {
        let job = &affected.job;
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            escape(&job.name),
            time_text(job.second.wait),
            time_text(job.first.wait),
            time_text(job.second.finish),
            time_text(job.first.finish),
            job.second.preemptions,
            job.first.preemptions,
        )?;
    }
    Ok(())
}

/// A text from a file as plain text of a Markdown table.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '#' => {
                escaped.push('\\');
                escaped.push(char);
            }
            char if char.is_control() => escaped.push(' '),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_end_a_cell_or_add_markup() {
        for (text, expected) in [
            ("plain-1", "plain-1"),
            ("a|b\nc", "a\\|b c"),
            ("<img src=x>", "\\<img src=x\\>"),
            ("[a](b)", "\\[a\\](b)"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }
}
