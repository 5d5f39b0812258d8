//! The file of `--search`: goals, and the fields with the values to try.

use super::config_path::ConfigPath;
use crate::simulate::Measure;
use anyhow::{Error, anyhow};
use lockkeeper_simulate::tune::SearchSpace;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// The most values of a field.
const VALUES_MAX: usize = 1_000;

/// Goals and fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SearchFile {
    pub(crate) goals: Vec<Goal>,
    fields: Vec<FieldEntry>,
}

/// What a measure of the simulation should be; measures are named as in the CSV of `lockkeeper simulate`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Goal {
    #[serde(default = "total")]
    scope: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    flavor: String,
    #[serde(default)]
    resource: String,
    measure: String,
    at_most: Option<f64>,
    at_least: Option<f64>,
    best: Option<Best>,
}

/// Which values of a measure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Best {
    Lowest,
    Highest,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FieldEntry {
    path: String,
    values: Vec<Value>,
}

/// A field and its values; the first is the one of today, if it is the same wherever the path leads.
#[derive(Clone, Debug)]
pub(crate) struct SearchField {
    pub(crate) path: ConfigPath,
    /// The values after the first choice, which changes nothing.
    pub(crate) values: Vec<Value>,
}

fn total() -> String {
    "total".to_owned()
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scope)?;
        for part in [&self.name, &self.flavor, &self.resource] {
            if !part.is_empty() {
                write!(f, " {part}")?;
            }
        }
        write!(f, " {}", self.measure)?;
        match (self.at_most, self.at_least, self.best) {
            (Some(limit), ..) => write!(f, " at most {limit}"),
            (_, Some(limit), _) => write!(f, " at least {limit}"),
            (.., Some(Best::Highest)) => write!(f, " highest"),
            _ => write!(f, " lowest"),
        }
    }
}

impl Goal {
    /// Whether higher values are better.
    pub(crate) fn prefers_higher(&self) -> bool {
        self.at_least.is_some() || self.best == Some(Best::Highest)
    }

    /// The value of a simulation.
    pub(crate) fn value(&self, measures: &[Measure]) -> Result<f64, Error> {
        let mut measures = measures.iter();
        let found = measures.find(|it| {
            let key = &it.key;
            key.scope == self.scope
                && key.name == self.name
                && key.flavor == self.flavor
                && key.resource == self.resource
                && key.measure == self.measure
        });
        let found = found.ok_or_else(|| {
            anyhow!("goal {self}: the simulation has no such measure; `lockkeeper simulate --output csv` lists all")
        })?;
        let value: Result<f64, _> = found.value.parse();
        let value = value.ok().filter(|it| it.is_finite());
        value.ok_or_else(|| anyhow!("goal {self}: its value {:?} is no number", found.value))
    }

    /// The score of a value, lower is better: how far a limit is exceeded, or the value.
    pub(crate) fn score(&self, value: f64) -> f64 {
        match (self.at_most, self.at_least) {
            (Some(limit), _) => (value - limit).max(0.0),
            (_, Some(limit)) => (limit - value).max(0.0),
            _ if self.prefers_higher() => -value,
            _ => value,
        }
    }

    /// Whether it is a limit, and not only a direction.
    pub(crate) fn is_limit(&self) -> bool {
        self.at_most.is_some() || self.at_least.is_some()
    }
}

impl SearchFile {
    /// Checks the goals and the fields against the configuration of today; returns the fields.
    pub(crate) fn fields(&self, config: &Value) -> Result<Vec<SearchField>, Error> {
        if self.goals.is_empty() || self.fields.is_empty() {
            return Err(anyhow!("goals and fields must not be empty"));
        }
        for goal in &self.goals {
            let parts = [
                goal.at_most.is_some(),
                goal.at_least.is_some(),
                goal.best.is_some(),
            ];
            if parts.into_iter().filter(|it| *it).count() != 1 {
                return Err(anyhow!(
                    "goal {}: give one of atMost, atLeast and best",
                    goal.measure
                ));
            }
        }
        self.fields.iter().map(|it| field(it, config)).collect()
    }
}

fn field(entry: &FieldEntry, config: &Value) -> Result<SearchField, Error> {
    let path = ConfigPath::parse(&entry.path)?;
    if entry.values.is_empty() || entry.values.len() > VALUES_MAX {
        return Err(anyhow!("{path}: give 1 to {VALUES_MAX} values"));
    }
    // A path that leads nowhere is an error before the first simulation.
    let mut changed = config.clone();
    for value in &entry.values {
        path.set(&mut changed, value)?;
    }
    let today = path.get(config);
    let mut values: Vec<Value> = Vec::new();
    for value in &entry.values {
        if Some(value) != today.as_ref() && !values.contains(value) {
            values.push(value.clone());
        }
    }
    Ok(SearchField { path, values })
}

/// The space of some fields: for each one no change, or one of its values.
pub(crate) fn space(fields: &[SearchField]) -> SearchSpace {
    let sizes = fields.iter().map(|it| it.values.len().saturating_add(1));
    SearchSpace::new(&sizes.collect::<Vec<usize>>())
}
