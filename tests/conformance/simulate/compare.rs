//! Finds the first field of a timeline that differs from the recorded one.

use lockkeeper_simulate::timeline::Timeline;
use serde_json::Value;

/// Fields that large traces leave out.
const OPTIONAL: [&str; 2] = ["instants", "events"];

/// The path and the values of the first difference.
pub fn difference(timeline: &Timeline, expected: &Value) -> Option<String> {
    let got = serde_json::to_value(timeline).unwrap();
    // Events come first: the first differing event is the cause of most other differences.
    let fields = [
        "instants", "events", "jobs", "outcome", "makespan", "cycles", "stats", "usage",
    ];
    fields.into_iter().find_map(|field| {
        let is_left_out = OPTIONAL.contains(&field) && expected.get(field).is_none();
        let found = || first_difference(field, &got[field], &expected[field]);
        if is_left_out { None } else { found() }
    })
}

fn first_difference(path: &str, got: &Value, expected: &Value) -> Option<String> {
    match (got, expected) {
        _ if got == expected => None,
        (Value::Array(got), Value::Array(expected)) => {
            let pairs = got.iter().zip(expected).enumerate();
            let mut found = pairs.filter_map(|(at, (got, expected))| {
                // Short lists, such as events, are printed as a whole.
                if got.is_array() && got != expected {
                    return Some(differ(&format!("{path}[{at}]"), got, expected));
                }
                first_difference(&format!("{path}[{at}]"), got, expected)
            });
            found.next().or_else(|| {
                let lengths = (got.len(), expected.len());
                Some(format!(
                    "{path}: got {} entries, expected {}",
                    lengths.0, lengths.1
                ))
            })
        }
        (Value::Object(got), Value::Object(expected)) => {
            let keys = expected.keys().chain(got.keys());
            let null = Value::Null;
            keys.into_iter().find_map(|key| {
                let got = got.get(key).unwrap_or(&null);
                let expected = expected.get(key).unwrap_or(&null);
                first_difference(&format!("{path}.{key}"), got, expected)
            })
        }
        _ => Some(differ(path, got, expected)),
    }
}

fn differ(path: &str, got: &Value, expected: &Value) -> String {
    format!("{path}:\n    got      {got}\n    expected {expected}")
}
