//! Reads the configuration file.

use crate::user_rules::{self, RuleDirs};
use crate::{Failure, standard_output};
use anyhow::{Context, Error, anyhow, bail};
use lockkeeper_api::config::{Action, Config};
use lockkeeper_check::yaml::place_and_message;
use lockkeeper_policies::reference::unknown_rule_message;
use lockkeeper_policies::registry;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user_rules::{Source, UserRules, is_user_id};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The least similarity (0 to 1) of an unknown key and a known one, for the known one to be suggested.
const SIMILARITY_MIN: f64 = 0.6;

/// The largest accepted file, in bytes: 1 MiB.
const SIZE_MAX_BYTES: u64 = 1024 * 1024;

/// A configuration file, its user rules, and the parsed values of both.
#[derive(Debug, Default)]
pub(crate) struct LoadedConfig {
    /// The text of the file.
    pub(crate) text: String,
    /// The pages of user rules.
    pub(crate) pages: Vec<Source>,
    /// The parsed configuration.
    pub(crate) config: Config,
    /// The settings of the rules.
    pub(crate) settings: Settings,
}

/// Reads the file and the user rules. Without a file, every value has its default.
pub(crate) fn read(path: Option<&Path>, folders: &RuleDirs) -> Result<LoadedConfig, Error> {
    let text = path.map(read_text).transpose()?;
    load(path, text.unwrap_or_default(), folders.pages()?)
}

/// Prints a configuration as a file that reads back the same.
pub(crate) fn print(config: &Config) -> Result<(), Failure> {
    let yaml = serde_saphyr::to_string(config)?;
    Ok(standard_output::print(yaml)?)
}

/// Reads the file.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let shown = path.display();
    let mut text = String::new();
    File::open(path)
        // One byte more than the limit shows that the file is larger.
        .and_then(|file| file.take(SIZE_MAX_BYTES + 1).read_to_string(&mut text))
        .with_context(|| format!("cannot read {shown}; check the path and its permissions"))?;
    if u64::try_from(text.len())? > SIZE_MAX_BYTES {
        bail!("{shown} is larger than {SIZE_MAX_BYTES} bytes; is it the configuration file?");
    }
    Ok(text)
}

/// Parses and checks a file and the user rules. The error names the file, the position and the problem.
pub(crate) fn load(
    path: Option<&Path>,
    text: String,
    pages: Vec<Source>,
) -> Result<LoadedConfig, Error> {
    let rules = user_rules::compile(&pages)?;
    let path = path.unwrap_or(Path::new("")).display();
    let parsed = parse(&text, &rules);
    let (config, settings) =
        parsed.map_err(|(place, message)| anyhow!("{path}{place}: {message}"))?;
    Ok(LoadedConfig {
        text,
        pages,
        config,
        settings: settings.with_time(unix_now_seconds()),
    })
}

/// The current time in seconds since 1970.
pub(crate) fn unix_now_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX))
}

/// Parses the text. The error has the position as `:line:column`, and the message.
fn parse(text: &str, rules: &Arc<UserRules>) -> Result<(Config, Settings), (String, String)> {
    let config: Config = if text.trim().is_empty() {
        Config::default()
    } else {
        from_yaml(text)?
    };
    let checked = config.check();
    checked.map_err(|error| (String::new(), error.to_string()))?;
    match registry::settings_with(&config, Arc::clone(rules)) {
        Ok(settings) => Ok((config, settings)),
        Err(unknown) => {
            // The parser repeats the error with the position of the unknown name.
            from_yaml::<RuleNames>(text)?;
            Err((String::new(), unknown.to_string()))
        }
    }
}

fn from_yaml<T: DeserializeOwned>(text: &str) -> Result<T, (String, String)> {
    serde_saphyr::from_str(text).map_err(|error| {
        let (place, message) = place_and_message(&error);
        (place, explain_parse_error(&message))
    })
}

/// The parts of the file that name rules. Parsed only after an unknown name, to get the position from the
/// parser.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RuleNames {
    rules: NamedRules,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedRules {
    actions: BTreeMap<ExistingRuleId, Action>,
    namespaces: BTreeMap<String, Namespace>,
    exceptions: Vec<NamedException>,
}

#[derive(Deserialize)]
struct NamedException {
    #[serde(rename = "rules")]
    _rules: Vec<ExistingRuleId>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Namespace {
    actions: BTreeMap<ExistingRuleId, Action>,
}

/// The id of a built-in rule, or of a possible user rule.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct ExistingRuleId(String);

impl TryFrom<String> for ExistingRuleId {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        if is_user_id(&id) || registry::find(&id).is_some() {
            Ok(Self(id))
        } else {
            Err(unknown_rule_message(&id))
        }
    }
}

/// Adds the nearest known key or the accepted values to a message of the parser.
fn explain_parse_error(message: &str) -> String {
    let unsigned = ["invalid u64", "invalid u32"];
    if unsigned.contains(&message) {
        return "expected a whole number, 0 or more".to_owned();
    }
    match nearest_key(message) {
        Some(known) => format!("{message}; did you mean `{known}`?"),
        None => message.to_owned(),
    }
}

/// The known key that is most similar to the unknown one in "unknown field `x`, expected one of a, b".
pub(crate) fn nearest_key(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("unknown ")?.1.split_once('`')?;
    let (unknown, rest) = rest.split_once('`')?;
    let (_, known) = rest.split_once("expected ")?;
    let known = known.strip_prefix("one of ").unwrap_or(known).split(", ");
    let scored = known.map(|known| {
        let known = known.trim_matches('`');
        (strsim::jaro_winkler(unknown, known), known)
    });
    let (score, known) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= SIMILARITY_MIN).then_some(known)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn parse(text: &str) -> Result<(Config, Settings), (String, String)> {
        super::parse(text, &Arc::default())
    }

    #[track_caller]
    fn assert_rejected(text: &str, place: &str, part: &str) {
        let (at, message) = parse(text).unwrap_err();
        assert_eq!(at, place, "{message}");
        assert!(message.contains(part), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn config_documented_example_parses() {
        let config = parse(
            "rules:\n  actions: {CQ007: warn}\npriority:\n  maxPreemptionAboveScheduling: 9\n",
        );
        let (config, _) = config.unwrap();
        assert_eq!(config.rules.actions.get("CQ007"), Some(&Action::Warn));
        assert_eq!(config.priority.max_preemption_above_scheduling, Some(9));
        assert_eq!(parse(" \n").unwrap().0, Config::default());
    }

    #[test]
    fn config_unknown_key_suggests_nearest() {
        assert_rejected("rulse: {}\n", ":1:1", "did you mean `rules`?");
        assert_rejected(
            "webhook:\n  bodyLimitByte: 5\n",
            ":2:3",
            "did you mean `bodyLimitBytes`?",
        );
        assert_rejected(
            "rules:\n  actions: {CQ007: wran}\n",
            ":2:20",
            "did you mean `warn`?",
        );
        assert_rejected(
            "webhook:\n  drainSeconds: -1\n",
            ":2:17",
            "a whole number, 0 or more",
        );
        assert_rejected("webhook: [\n", ":1:10", "expected a mapping");
    }

    #[test]
    fn config_invalid_value_is_reported_with_location() {
        assert_rejected(
            "rules:\n  actions:\n    CQ007: warn\n    CQ999: warn\n",
            ":4:5",
            "there is no rule \"CQ999\"; `lockkeeper rules` lists them",
        );
        assert_rejected(
            "rules: {namespaces: {team: {actions: {cq007: off}}}}\n",
            ":1:39",
            "there is no rule \"cq007\"; did you mean CQ007?",
        );
        assert_rejected(
            "rules:\n  exceptions:\n  - {rules: [CQ007, CQ999], selector: {names: [a]}, reason: r, expires: 2026-12-31}\n",
            ":3:21",
            "there is no rule \"CQ999\"",
        );
        assert_rejected(
            "rules: {actions: {TEAM001: off}}\n",
            "",
            "rules.actions: there is no rule \"TEAM001\"; load its page with --rules",
        );
        assert_rejected(
            "rules:\n  exceptions: [{rules: [CQ007], selector: {}, reason: r, expires: 2026-12-31}]\n",
            ":2:43",
            "the selector matches every object",
        );
        assert_rejected(
            "rules:\n  exceptions: [{rules: [CQ007], selector: {names: [a]}, reason: r, expires: soon}]\n",
            ":2:77",
            "\"soon\" is neither a day",
        );
        assert_rejected(
            "webhook:\n  listen: 127.0.0.1\n",
            ":2:11",
            "\"127.0.0.1\" does not end in a port",
        );
        assert_rejected(
            "webhook:\n  listen: 9443\n",
            ":2:11",
            "such as 127.0.0.1:9443",
        );
        assert_rejected(
            "webhook:\n  metricsListen: :9444\n",
            ":2:18",
            "0.0.0.0:9443 for all",
        );
        for limit in ["0", "65535", "67108865"] {
            assert_rejected(
                &format!("webhook:\n  bodyLimitBytes: {limit}\n"),
                ":2:19",
                "not in the range from 65536 to 67108864",
            );
        }
        assert_rejected("webhook: {drainSeconds: 3601}\n", ":1:25", "from 0 to 3600");
        assert_rejected(
            "webhook:\n  foreignKinds: [kueue, volcano]\n",
            ":2:25",
            "unknown project \"volcano\"; give one of kueue, koordinator",
        );
    }

    #[test]
    fn config_limit_out_of_range_is_reported_with_location() {
        assert_rejected(
            "webhook:\n  limits:\n    requestsMax: 0\n",
            ":3:18",
            "0 is not in the range from 1 to 65536",
        );
        assert_rejected(
            "webhook: {limits: {http2: {frameMaxBytes: 16383}}}\n",
            ":1:43",
            "from 16384 to 1048576",
        );
        assert_rejected(
            "webhook: {limits: {headMaxBytes: 16k}}\n",
            ":1:34",
            "a whole number, 0 or more",
        );
        assert_rejected(
            "webhook:\n  limits:\n    requestMax: 1\n",
            ":3:5",
            "did you mean `requestsMax`?",
        );
        assert_rejected(
            "webhook:\n  bodyLimitBytes: 2097152\n  limits: {bodiesMaxBytes: 1048576}\n",
            "",
            "webhook.bodyLimitBytes is 2097152, and webhook.limits.bodiesMaxBytes is 1048576",
        );
    }

    #[test]
    fn config_invalid_controller_value_is_rejected() {
        assert_rejected(
            "waitForPodsReady:\n  timeout: 5\n",
            ":2:12",
            "\"5\" is not a duration",
        );
        assert_rejected(
            "waitForPodsReady: {timeout: 0s}\n",
            ":1:29",
            "set enable to false",
        );
        assert_rejected(
            "waitForPodsReady: {requeuingStrategy: {backoffFactor: 0.5}}\n",
            ":1:55",
            "0.5 is not in the range from 1 to 100000",
        );
        assert_rejected(
            "waitForPodsReady: {requeuingStrategy: {preset: kep-1282, backoffMaxSeconds: 0}}\n",
            "",
            "requeuingStrategy.preset and waitForPodsReady.requeuingStrategy.backoffMaxSeconds are both",
        );
        assert_rejected(
            "preemption:\n  fairSharing:\n    preemptionStrategies: []\n",
            ":3:27",
            "omit it to use both",
        );
        assert_rejected(
            "preemption: {maxVictimPerCycle: 3}\n",
            ":1:14",
            "did you mean `maxVictimsPerCycle`?",
        );
        assert_rejected(
            "controller: {leaderElection: {leaseSeconds: 10}}\n",
            "",
            "renewSeconds is 10, and controller.leaderElection.leaseSeconds is 10",
        );
        assert_rejected(
            "controller: {leaderElection: {lease: lockkeeper}}\n",
            ":1:38",
            "\"lockkeeper\" is not of the form namespace/name",
        );
    }

    #[test]
    fn config_printed_round_trips() {
        for text in [
            "",
            "rules:\n  actions: {CQ007: off, CQ001: audit}\n  namespaces:\n    \"no\": {actions: {WL004: warn}}\n    \"1\": {}\n",
            "priority: {maxPreemptionAboveScheduling: 0, separatePreemptionAllowedFor: [\"yes\", \"\", \"a: b\"]}\n",
            "priority: {separatePreemptionAllowedFor: []}\njob: {disableDefaultPreemptiable: true}\n",
            "webhook: {listen: \"[::]:1\", metricsListen: off, minimumTls: \"1.2\", http1Only: true, bodyLimitBytes: 65536, drainSeconds: 0}\n",
            "webhook: {foreignKinds: [koordinator, kueue]}\n",
            "webhook: {limits: {requestsMax: 1, http2: {streamsMax: 1}, metrics: {connectionsMax: 1}}}\n",
            "waitForPodsReady: {enable: true, timeout: 1h30m, recoveryTimeout: \"0s\", requeuingStrategy: {backoffFactor: 1.41284738, backoffBaseSeconds: 1}}\n",
            "waitForPodsReady: {requeuingStrategy: {timestamp: Creation, backoffLimitCount: 0, preset: kep-1282}}\n",
            "waitForPodsReady: {requeuingStrategy: {backoffFactor: 3, backoffMaxSeconds: 0}}\n",
            "preemption: {algorithm: FairSharing, fairSharing: {preemptionStrategies: [LessThanInitialShare]}, compatibility: kueue, damping: true, maxVictimsPerCycle: 1}\n",
            "rules: {exceptions: [{name: n, rules: [CQ007], selector: {names: [\"a*\"], matchLabels: {k: \"1\"}}, reason: r, expires: \"2026-12-31\"}]}\n",
            "controller: {leaderElection: {enable: false, lease: a/b}, listen: off, dryRun: true}\n",
        ] {
            let (config, _) = parse(text).unwrap();
            let printed = serde_saphyr::to_string(&config).unwrap();
            assert_eq!(parse(&printed).unwrap().0, config, "{printed}");
        }
    }
}
