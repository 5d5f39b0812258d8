//! Paths of fields in a configuration: `clusterQueues[team-a].preemption.withinClusterQueue`.

use anyhow::{Error, anyhow};
use serde_json::{Map, Value};
use std::fmt;

/// The keys that name an element of a list.
const NAMING_KEYS: [&str; 3] = ["name", "resource", "flavor"];

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A field of an object; a missing one is added.
    Field(String),
    /// The element of a list with this name, resource or flavor.
    Named(String),
    /// All elements of a list.
    All,
}

/// The path of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigPath {
    text: String,
    steps: Vec<Step>,
}

impl fmt::Display for ConfigPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ConfigPath {
    /// Parses a path: fields separated by dots, and elements of lists in brackets, `[*]` for all.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let (name, after) = inner
                    .split_once(']')
                    .ok_or_else(|| anyhow!("{text:?}: a bracket is not closed"))?;
                steps.push(match name {
                    "*" => Step::All,
                    name => Step::Named(name.to_owned()),
                });
                rest = after.strip_prefix('.').unwrap_or(after);
                continue;
            }
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            if field.is_empty() {
                return Err(anyhow!("{text:?}: a field has no name"));
            }
            steps.push(Step::Field(field.to_owned()));
            rest = after.strip_prefix('.').unwrap_or(after);
        }
        if steps.is_empty() {
            return Err(anyhow!("a path is empty"));
        }
        Ok(Self {
            text: text.to_owned(),
            steps,
        })
    }

    /// Sets the field, or the field of all elements that the path names.
    pub(crate) fn set(&self, config: &mut Value, to: &Value) -> Result<(), Error> {
        set(config, &self.steps, to).map_err(|why| anyhow!("{}: {why}", self.text))
    }

    /// The value of the field if it is the same wherever the path leads; null if it is missing.
    pub(crate) fn get(&self, config: &Value) -> Option<Value> {
        let mut values = Vec::new();
        collect(config, &self.steps, &mut values);
        let first = values.first()?;
        let is_same = values.iter().all(|it| it == first);
        is_same.then(|| (*first).clone())
    }
}

fn set(value: &mut Value, steps: &[Step], to: &Value) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        value.clone_from(to);
        return Ok(());
    };
    match step {
        Step::Field(name) => {
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
            let fields = value
                .as_object_mut()
                .ok_or_else(|| format!("the parent of {name} is no object"))?;
            set(fields.entry(name.clone()).or_insert(Value::Null), rest, to)
        }
        Step::Named(_) | Step::All => {
            let mut elements = elements(value, step).peekable();
            if elements.peek().is_none() {
                return Err(match step {
                    Step::Named(name) => format!("no element of the list is {name}"),
                    _ => "there is no list, or it is empty".to_owned(),
                });
            }
            elements.try_for_each(|it| set(it, rest, to))
        }
    }
}

/// The elements of a list that a step selects.
fn elements<'a>(value: &'a mut Value, step: &'a Step) -> impl Iterator<Item = &'a mut Value> {
    let list = value.as_array_mut().into_iter().flatten();
    list.filter(move |it| is_selected(it, step))
}

fn is_selected(element: &Value, step: &Step) -> bool {
    match step {
        Step::All => true,
        Step::Named(name) => {
            let mut keys = NAMING_KEYS.iter();
            keys.any(|key| element.get(key).and_then(Value::as_str) == Some(name))
        }
        Step::Field(_) => false,
    }
}

fn collect<'a>(value: &'a Value, steps: &[Step], out: &mut Vec<&'a Value>) {
    let Some((step, rest)) = steps.split_first() else {
        out.push(value);
        return;
    };
    match step {
        Step::Field(name) => collect(value.get(name).unwrap_or(&Value::Null), rest, out),
        Step::Named(_) | Step::All => {
            let list = value.as_array().into_iter().flatten();
            for element in list.filter(|it| is_selected(it, step)) {
                collect(element, rest, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ConfigPath;
    use serde_json::json;

    fn config() -> serde_json::Value {
        json!({"clusterQueues": [
            {"name": "a", "quotas": [{"resource": "nvidia.com/gpu", "nominal": "4"}]},
            {"name": "b", "backfill": {"policy": "Easy"}},
        ]})
    }

    #[test]
    fn path_sets_named_elements_and_adds_missing_objects() {
        let mut changed = config();
        let set = |path: &str, config: &mut serde_json::Value| {
            ConfigPath::parse(path).unwrap().set(config, &json!("x"))
        };
        set(
            "clusterQueues[a].quotas[nvidia.com/gpu].nominal",
            &mut changed,
        )
        .unwrap();
        set("clusterQueues[*].backfill.policy", &mut changed).unwrap();
        set("algorithm", &mut changed).unwrap();
        let expected = json!({"algorithm": "x", "clusterQueues": [
            {"name": "a", "backfill": {"policy": "x"},
             "quotas": [{"resource": "nvidia.com/gpu", "nominal": "x"}]},
            {"name": "b", "backfill": {"policy": "x"}},
        ]});
        assert_eq!(changed, expected);
    }

    #[test]
    fn path_to_nothing_is_an_error() {
        for (path, expected) in [
            (
                "clusterQueues[c].cohort",
                "clusterQueues[c].cohort: no element of the list is c",
            ),
            (
                "cohorts[*].parent",
                "cohorts[*].parent: there is no list, or it is empty",
            ),
            (
                "clusterQueues.a",
                "clusterQueues.a: the parent of a is no object",
            ),
        ] {
            let path = ConfigPath::parse(path).unwrap();
            let error = path.set(&mut config(), &json!(1)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        for (path, expected) in [
            ("", "a path is empty"),
            ("a[b", "\"a[b\": a bracket is not closed"),
            ("a..b", "\"a..b\": a field has no name"),
        ] {
            let error = ConfigPath::parse(path).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn get_returns_a_value_only_if_all_are_the_same() {
        let get = |path: &str| ConfigPath::parse(path).unwrap().get(&config());
        assert_eq!(get("clusterQueues[b].backfill.policy"), Some(json!("Easy")));
        assert_eq!(get("clusterQueues[*].backfill.policy"), None);
        assert_eq!(get("clusterQueues[*].cohort"), Some(json!(null)));
    }
}
