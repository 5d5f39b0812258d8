//! The best configurations as text and JSON.

use super::evaluation::{Evaluated, Evaluation};
use crate::report_format::{to_pretty_json, to_table};
use anyhow::Error;
use lockkeeper_simulate::tune::Candidate;
use serde_json::{Value, json};
use std::fmt::Write;

/// One of the best configurations.
pub(crate) struct BestConfiguration {
    pub(crate) candidate: Candidate,
    pub(crate) evaluated: Evaluated,
    /// The number of others with the same values.
    pub(crate) equal: usize,
}

/// The result of a search.
pub(crate) struct TuneResult {
    /// Simulated, or known from an earlier run.
    pub(crate) tried: u64,
    /// The size of the space.
    pub(crate) all: u64,
    /// Left out: their simulation ends in a livelock or a loop.
    pub(crate) loops: u64,
    /// Left out: they admit fewer jobs than the configuration of today.
    pub(crate) admits_fewer: u64,
    /// Whether the time was over before the search.
    pub(crate) is_cut: bool,
    /// The configuration of today.
    pub(crate) today: Evaluated,
    pub(crate) best: Vec<BestConfiguration>,
}

impl TuneResult {
    /// Whether one of the configurations is within all limits.
    pub(crate) fn meets_limits(&self, evaluation: &Evaluation<'_>) -> bool {
        let mut best = self.best.iter();
        best.any(|it| evaluation.meets_limits(&it.evaluated))
    }

    /// The result for people.
    pub(crate) fn text(&self, evaluation: &Evaluation<'_>) -> Result<String, Error> {
        let mut out = String::new();
        writeln!(out, "tried {} of {} configurations", self.tried, self.all)?;
        if self.loops > 0 {
            writeln!(out, "left out {}: livelock or loop", self.loops)?;
        }
        if self.admits_fewer > 0 {
            writeln!(
                out,
                "left out {}: fewer jobs are admitted than today",
                self.admits_fewer
            )?;
        }
        if self.is_cut {
            writeln!(
                out,
                "the time of --timeout is over; with --results a further run goes on from here"
            )?;
        }
        out.push_str("\nGoals\n");
        for (number, goal) in (1_u64..).zip(evaluation.goals) {
            writeln!(out, "  {number}  {goal}")?;
        }
        let heading = if self.meets_limits(evaluation) {
            "Best configurations: none is better for one goal and as good for the others"
        } else {
            "No configuration is within all limits; the nearest are"
        };
        writeln!(out, "\n{heading}")?;
        out.push_str(&self.table(evaluation)?);
        Ok(out)
    }

    fn table(&self, evaluation: &Evaluation<'_>) -> Result<String, Error> {
        let numbers = (1..=evaluation.goals.len()).map(|it| format!("GOAL {it}"));
        let mut header = vec![String::new()];
        header.extend(numbers);
        header.push("CHANGES".to_owned());
        let mut rows = vec![header];
        rows.push(row("today", evaluation, &self.today, String::new()));
        for (number, best) in (1_u64..).zip(&self.best) {
            let mut changes = evaluation.changes(&best.candidate);
            if best.equal > 0 {
                write!(changes, " ({} more with the same values)", best.equal)?;
            }
            rows.push(row(
                &number.to_string(),
                evaluation,
                &best.evaluated,
                changes,
            ));
        }
        to_table(&rows)
    }

    /// The result as JSON.
    pub(crate) fn json(&self, evaluation: &Evaluation<'_>) -> Result<String, Error> {
        let best = self.best.iter().map(|best| {
            json!({
                "changes": changes(evaluation, &best.candidate),
                "values": best.evaluated.values,
                "meetsLimits": evaluation.meets_limits(&best.evaluated),
                "neverAdmitted": best.evaluated.never_admitted,
                "equal": best.equal,
            })
        });
        let goals = evaluation.goals.iter().map(ToString::to_string);
        to_pretty_json(&json!({
            "tried": self.tried,
            "configurations": self.all,
            "leftOut": {"livelockOrLoop": self.loops, "fewerAdmitted": self.admits_fewer},
            "timeout": self.is_cut,
            "goals": goals.collect::<Vec<_>>(),
            "today": {
                "values": self.today.values,
                "meetsLimits": evaluation.meets_limits(&self.today),
                "neverAdmitted": self.today.never_admitted,
            },
            "best": best.collect::<Vec<_>>(),
        }))
    }
}

fn row(name: &str, evaluation: &Evaluation<'_>, of: &Evaluated, changes: String) -> Vec<String> {
    let pairs = evaluation.goals.iter().zip(&of.values);
    let values = pairs.map(|(goal, value)| {
        let is_beyond = goal.is_limit() && goal.score(*value) > 0.0;
        let mark = if is_beyond { " !" } else { "" };
        format!("{}{mark}", number_text(*value))
    });
    let mut row = vec![format!("  {name}")];
    row.extend(values);
    row.push(changes);
    row
}

/// A number with at most three decimals.
fn number_text(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The changed fields with their values.
fn changes(evaluation: &Evaluation<'_>, candidate: &Candidate) -> Value {
    let pairs = evaluation.fields.iter().zip(candidate);
    let changes = pairs.filter_map(|(field, choice)| {
        let value = choice.checked_sub(1).and_then(|at| field.values.get(at))?;
        Some((field.path.to_string(), value.clone()))
    });
    Value::Object(changes.collect())
}
