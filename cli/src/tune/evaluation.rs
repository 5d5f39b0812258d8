//! Simulates configurations, and measures them by the goals.

use super::search_file::{Goal, SearchField};
use crate::simulate::{Located, measures};
use anyhow::{Error, anyhow};
use lockkeeper_simulate::timeline::{JobTrace, Outcome, TraceConfig, metrics, simulate};
use lockkeeper_simulate::tune::{Candidate, Score};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a configuration over all traces.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Evaluated {
    /// By goal: the worst value of all traces.
    pub(crate) values: Vec<f64>,
    /// The jobs that are never admitted.
    pub(crate) never_admitted: usize,
    /// Whether a simulation ends in a livelock or a loop.
    pub(crate) is_loop: bool,
}

/// The input of all simulations of a search.
pub(crate) struct Evaluation<'a> {
    pub(crate) traces: &'a [Located<JobTrace>],
    /// The configuration of today.
    pub(crate) config: &'a Value,
    pub(crate) fields: &'a [SearchField],
    pub(crate) goals: &'a [Goal],
}

impl Evaluation<'_> {
    /// The configuration of a candidate.
    pub(crate) fn config(&self, candidate: &Candidate) -> Result<Value, Error> {
        let mut config = self.config.clone();
        for (field, choice) in self.fields.iter().zip(candidate) {
            if let Some(value) = choice.checked_sub(1).and_then(|at| field.values.get(at)) {
                field.path.set(&mut config, value)?;
            }
        }
        Ok(config)
    }

    /// Simulates all traces with a candidate.
    pub(crate) fn run(&self, candidate: &Candidate) -> Result<Evaluated, Error> {
        let config = self.config(candidate)?;
        let decoded: TraceConfig = serde_json::from_value(config)
            .map_err(|error| anyhow!("{}: {error}", self.changes(candidate)))?;
        let mut worst: Option<Vec<f64>> = None;
        let mut evaluated = Evaluated::default();
        for trace in self.traces {
            let trace_config = decoded.applied_to(&trace.value);
            let timeline = simulate(&trace_config).map_err(|error| {
                anyhow!("{} with {}: {error}", trace.file, self.changes(candidate))
            })?;
            evaluated.is_loop |= matches!(timeline.outcome, Outcome::Livelock | Outcome::Loop);
            let never = timeline.stats.never_admitted;
            evaluated.never_admitted = evaluated.never_admitted.saturating_add(never);
            let metrics = metrics(&trace_config, &timeline);
            let measured = measures(&trace_config, &timeline, &metrics);
            let values = self.goals.iter().map(|it| it.value(&measured));
            let values: Vec<f64> = values.collect::<Result<_, Error>>()?;
            worst = Some(match worst {
                None => values,
                Some(before) => self.worse(&before, &values),
            });
        }
        evaluated.values = worst.unwrap_or_default();
        Ok(evaluated)
    }

    /// The worse of two values for each goal.
    fn worse(&self, a: &[f64], b: &[f64]) -> Vec<f64> {
        let pairs = self.goals.iter().zip(a.iter().zip(b));
        let worse = pairs.map(|(goal, (a, b))| {
            if goal.prefers_higher() {
                a.min(*b)
            } else {
                a.max(*b)
            }
        });
        worse.collect()
    }

    /// The score of a result.
    pub(crate) fn score(&self, evaluated: &Evaluated) -> Score {
        let pairs = self.goals.iter().zip(&evaluated.values);
        pairs.map(|(goal, value)| goal.score(*value)).collect()
    }

    /// Whether a result is within all limits.
    pub(crate) fn meets_limits(&self, evaluated: &Evaluated) -> bool {
        let mut pairs = self.goals.iter().zip(&evaluated.values);
        pairs.all(|(goal, value)| !goal.is_limit() || goal.score(*value) <= 0.0)
    }

    /// The changed fields of a candidate as text.
    pub(crate) fn changes(&self, candidate: &Candidate) -> String {
        let changes = self
            .fields
            .iter()
            .zip(candidate)
            .filter_map(|(field, choice)| {
                let value = choice.checked_sub(1).and_then(|at| field.values.get(at))?;
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                Some(format!("{}={value}", field.path))
            });
        let changes: Vec<String> = changes.collect();
        if changes.is_empty() {
            "no change".to_owned()
        } else {
            changes.join(", ")
        }
    }
}
