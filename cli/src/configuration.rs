//! Reads the configuration file.

use crate::yaml::place_and_message;
use anyhow::{Context, Error, anyhow};
use lockkeeper_api::config::Config;
use std::fs;
use std::path::Path;

/// How alike two keys must be, from 0 to 1, for one to be meant by the other.
const ALIKE: f64 = 0.6;

/// Reads the file; without one everything is as by default.
pub(crate) fn read(path: Option<&Path>) -> Result<Config, Error> {
    let Some(path) = path else {
        return Ok(Config::default());
    };
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    parse(&text).map_err(|(place, message)| anyhow!("{shown}{place}: {message}"))
}

/// Parses the text. The error has the place as `:line:column` and what is wrong.
fn parse(text: &str) -> Result<Config, (String, String)> {
    if text.trim().is_empty() {
        return Ok(Config::default());
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let (place, message) = place_and_message(&error);
        (place, explain(&message))
    })
}

/// Says in a message of the parser what is meant: the nearest known key, or the values that fit.
fn explain(message: &str) -> String {
    let unsigned = ["invalid u64", "invalid u32"];
    if unsigned.contains(&message) {
        return "expected a whole number, 0 or more".to_owned();
    }
    match nearest(message) {
        Some(known) => format!("{message}; did you mean `{known}`?"),
        None => message.to_owned(),
    }
}

/// The known key that is most like the unknown one in "unknown field `x`, expected one of a, b".
fn nearest(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("unknown ")?.1.split_once('`')?;
    let (unknown, rest) = rest.split_once('`')?;
    let (_, known) = rest.split_once("expected ")?;
    let known = known.strip_prefix("one of ").unwrap_or(known).split(", ");
    let scored = known.map(|known| {
        let known = known.trim_matches('`');
        (strsim::jaro_winkler(unknown, known), known)
    });
    let (score, known) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= ALIKE).then_some(known)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_api::config::Action;

    #[track_caller]
    fn refused(text: &str, place: &str, part: &str) {
        let (at, message) = parse(text).unwrap_err();
        assert_eq!(at, place, "{message}");
        assert!(message.contains(part), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn reads_what_is_documented() {
        let config = parse(
            "rules:\n  actions: {CQ007: warn}\npriority:\n  maxPreemptionAboveScheduling: 9\n",
        );
        let config = config.unwrap();
        assert_eq!(config.rules.actions.get("CQ007"), Some(&Action::Warn));
        assert_eq!(config.priority.max_preemption_above_scheduling, Some(9));
        assert_eq!(parse(" \n").unwrap(), Config::default());
    }

    #[test]
    fn says_where_and_what_is_meant() {
        refused("rulse: {}\n", ":1:1", "did you mean `rules`?");
        refused(
            "webhook:\n  bodyLimitByte: 5\n",
            ":2:3",
            "did you mean `bodyLimitBytes`?",
        );
        refused(
            "rules:\n  actions: {CQ007: wran}\n",
            ":2:20",
            "did you mean `warn`?",
        );
        refused(
            "webhook:\n  drainSeconds: -1\n",
            ":2:17",
            "a whole number, 0 or more",
        );
        refused("webhook: [\n", ":1:10", "expected mapping");
    }
}
