//! Reads the configuration file.

use crate::Failure;
use crate::user_rules::{self, Folders};
use crate::yaml::place_and_message;
use anyhow::{Context, Error, anyhow, bail};
use lockkeeper_api::config::{Action, Config};
use lockkeeper_policies::reference::no_such_rule;
use lockkeeper_policies::registry;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user::{Rules, Source, is_user_id};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// How alike two keys must be, from 0 to 1, for one to be meant by the other.
const ALIKE: f64 = 0.6;

/// The largest file that is read, in bytes: 1 MiB.
const SIZE_MAX_BYTES: u64 = 1024 * 1024;

/// A configuration as it stands in the file.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// The whole file.
    pub(crate) text: String,
    /// The pages of users' rules.
    pub(crate) pages: Vec<Source>,
    /// What it says.
    pub(crate) config: Config,
    /// What it says to rules.
    pub(crate) settings: Settings,
}

/// Reads the file and the users' rules; without a file everything is as by default.
pub(crate) fn read(path: Option<&Path>, folders: &Folders) -> Result<Loaded, Error> {
    let text = path.map(text).transpose()?;
    load(path, text.unwrap_or_default(), folders.pages()?)
}

/// Prints a configuration as a file that reads back the same.
pub(crate) fn print(config: &Config) -> Result<(), Failure> {
    let yaml = serde_saphyr::to_string(config)?;
    Ok(stdout().lock().write_all(yaml.as_bytes())?)
}

/// The content of the file.
pub(crate) fn text(path: &Path) -> Result<String, Error> {
    let shown = path.display();
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(SIZE_MAX_BYTES + 1).read_to_string(&mut text))
        .with_context(|| format!("cannot read {shown}; check the path and its rights"))?;
    if u64::try_from(text.len())? > SIZE_MAX_BYTES {
        bail!("{shown} is larger than {SIZE_MAX_BYTES} bytes; is it the configuration file?");
    }
    Ok(text)
}

/// Checks what was read. The error names the file, the place, and what is wrong.
pub(crate) fn load(path: Option<&Path>, text: String, pages: Vec<Source>) -> Result<Loaded, Error> {
    let rules = user_rules::compile(&pages)?;
    let path = path.unwrap_or(Path::new("")).display();
    let parsed = parse(&text, &rules);
    let (config, settings) =
        parsed.map_err(|(place, message)| anyhow!("{path}{place}: {message}"))?;
    Ok(Loaded {
        text,
        pages,
        config,
        settings: settings.at(seconds_now()),
    })
}

/// In seconds since 1970.
pub(crate) fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX))
}

/// Parses the text. The error has the place as `:line:column` and what is wrong.
fn parse(text: &str, rules: &Arc<Rules>) -> Result<(Config, Settings), (String, String)> {
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
            from_yaml::<RuleNames>(text)?;
            Err((String::new(), unknown.to_string()))
        }
    }
}

fn from_yaml<T: DeserializeOwned>(text: &str) -> Result<T, (String, String)> {
    serde_saphyr::from_str(text).map_err(|error| {
        let (place, message) = place_and_message(&error);
        (place, explain(&message))
    })
}

/// The parts of the file that name rules. It is read when one of the names is wrong: then the parser
/// says where.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RuleNames {
    rules: NamedRules,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedRules {
    actions: BTreeMap<KnownRule, Action>,
    namespaces: BTreeMap<String, Namespace>,
    exceptions: Vec<NamedException>,
}

#[derive(Deserialize)]
struct NamedException {
    #[serde(rename = "rules")]
    _rules: Vec<KnownRule>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Namespace {
    actions: BTreeMap<KnownRule, Action>,
}

/// The id of a rule that exists, or may be one of a user.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct KnownRule(String);

impl TryFrom<String> for KnownRule {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        if is_user_id(&id) || registry::find(&id).is_some() {
            Ok(Self(id))
        } else {
            Err(no_such_rule(&id))
        }
    }
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

    fn parse(text: &str) -> Result<(Config, Settings), (String, String)> {
        super::parse(text, &Arc::default())
    }

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
        let (config, _) = config.unwrap();
        assert_eq!(config.rules.actions.get("CQ007"), Some(&Action::Warn));
        assert_eq!(config.priority.max_preemption_above_scheduling, Some(9));
        assert_eq!(parse(" \n").unwrap().0, Config::default());
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

    #[test]
    fn a_wrong_value_is_said_with_its_place() {
        refused(
            "rules:\n  actions:\n    CQ007: warn\n    CQ999: warn\n",
            ":4:5",
            "there is no rule \"CQ999\"; `lockkeeper rules` lists them",
        );
        refused(
            "rules: {namespaces: {team: {actions: {cq007: off}}}}\n",
            ":1:39",
            "there is no rule \"cq007\"; did you mean CQ007?",
        );
        refused(
            "rules:\n  exceptions:\n  - {rules: [CQ007, CQ999], selector: {names: [a]}, reason: r, expires: 2026-12-31}\n",
            ":3:21",
            "there is no rule \"CQ999\"",
        );
        refused(
            "rules: {actions: {TEAM001: off}}\n",
            "",
            "rules.actions: there is no rule \"TEAM001\"; give its page with --rules",
        );
        refused(
            "rules:\n  exceptions: [{rules: [CQ007], selector: {}, reason: r, expires: 2026-12-31}]\n",
            ":2:43",
            "it selects every object",
        );
        refused(
            "rules:\n  exceptions: [{rules: [CQ007], selector: {names: [a]}, reason: r, expires: soon}]\n",
            ":2:77",
            "\"soon\" is neither a day",
        );
        refused(
            "webhook:\n  listen: 127.0.0.1\n",
            ":2:11",
            "\"127.0.0.1\" does not end in a port",
        );
        refused(
            "webhook:\n  listen: 9443\n",
            ":2:11",
            "such as 127.0.0.1:9443",
        );
        refused(
            "webhook:\n  metricsListen: :9444\n",
            ":2:18",
            "0.0.0.0:9443 for all",
        );
        for limit in ["0", "65535", "67108865"] {
            refused(
                &format!("webhook:\n  bodyLimitBytes: {limit}\n"),
                ":2:19",
                "not in the range from 65536 to 67108864",
            );
        }
        refused("webhook: {drainSeconds: 3601}\n", ":1:25", "from 0 to 3600");
        refused(
            "webhook:\n  foreignKinds: [kueue, volcano]\n",
            ":2:25",
            "\"volcano\" is no project whose kinds are known; those are kueue and koordinator",
        );
    }

    #[test]
    fn a_limit_out_of_range_is_said_with_its_place() {
        refused(
            "webhook:\n  limits:\n    requestsMax: 0\n",
            ":3:18",
            "0 is not in the range from 1 to 65536",
        );
        refused(
            "webhook: {limits: {http2: {frameMaxBytes: 16383}}}\n",
            ":1:43",
            "from 16384 to 1048576",
        );
        refused(
            "webhook: {limits: {headMaxBytes: 16k}}\n",
            ":1:34",
            "a whole number, 0 or more",
        );
        refused(
            "webhook:\n  limits:\n    requestMax: 1\n",
            ":3:5",
            "did you mean `requestsMax`?",
        );
        refused(
            "webhook:\n  bodyLimitBytes: 2097152\n  limits: {bodiesMaxBytes: 1048576}\n",
            "",
            "webhook.bodyLimitBytes is 2097152, and webhook.limits.bodiesMaxBytes is 1048576",
        );
    }

    #[test]
    fn what_the_controller_reads_is_refused_with_its_place() {
        refused(
            "waitForPodsReady:\n  timeout: 5\n",
            ":2:12",
            "\"5\" is no length of time",
        );
        refused(
            "waitForPodsReady: {timeout: 0s}\n",
            ":1:29",
            "set enable to false",
        );
        refused(
            "waitForPodsReady: {requeuingStrategy: {backoffFactor: 0.5}}\n",
            ":1:55",
            "0.5 is not in the range from 1 to 100000",
        );
        refused(
            "waitForPodsReady: {requeuingStrategy: {preset: kep-1282, backoffMaxSeconds: 0}}\n",
            "",
            "requeuingStrategy.preset and waitForPodsReady.requeuingStrategy.backoffMaxSeconds are both",
        );
        refused(
            "preemption:\n  fairSharing:\n    preemptionStrategies: []\n",
            ":3:27",
            "leave it out for both",
        );
        refused(
            "preemption: {maxVictimPerCycle: 3}\n",
            ":1:14",
            "did you mean `maxVictimsPerCycle`?",
        );
        refused(
            "controller: {leaderElection: {leaseSeconds: 10}}\n",
            "",
            "renewSeconds is 10, and controller.leaderElection.leaseSeconds is 10",
        );
        refused(
            "controller: {leaderElection: {lease: lockkeeper}}\n",
            ":1:38",
            "\"lockkeeper\" is not the namespace and the name",
        );
    }

    #[test]
    fn what_is_printed_reads_back_equal() {
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
