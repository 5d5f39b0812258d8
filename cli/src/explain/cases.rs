//! Scenarios that are not about queues: pods and gangs on nodes, and jobs under elastic quotas.

use super::{Arguments, Output, Whose, parse, pretty};
use anyhow::{Context, Error, anyhow};
use lockkeeper_preemption::gang::Compatibility;
use lockkeeper_snapshot::{gang, job};
use serde_json::{Value, json};

/// The answer, if it is such a scenario.
pub(super) fn tell(text: &str, at: &str, arguments: &Arguments) -> Result<Option<String>, Error> {
    // What is no JSON or YAML is told by who reads it as its type.
    let Ok(value) = parse::<Value>(text) else {
        return Ok(None);
    };
    let (is_job, is_gang) = (job::Case::is_one(&value), gang::is_gang(&value));
    if (is_job || is_gang) && arguments.workload.is_some() {
        return Err(anyhow!(
            "--workload is for queues; here the preemptor is decided on"
        ));
    }
    match (is_job, is_gang) {
        (true, _) => of_job(value, at, arguments).map(Some),
        (false, true) => of_gang(text, at, arguments).map(Some),
        (false, false) => Ok(None),
    }
}

fn of_gang(text: &str, at: &str, arguments: &Arguments) -> Result<String, Error> {
    let compatibility = match arguments.compatibility {
        Some(Whose::Lockkeeper) => Some(Compatibility::Lockkeeper),
        Some(Whose::KubeScheduler) => Some(Compatibility::KubeScheduler),
        Some(Whose::Kueue) => {
            return Err(anyhow!(
                "Kueue knows no nodes; give kube-scheduler or lockkeeper"
            ));
        }
        None => None,
    };
    // From the text once more, so that a mistake is told with its place.
    let scenario: gang::Scenario = parse(text).with_context(|| format!("{at} is no scenario"))?;
    let loaded = gang::load(&scenario, gang::options(&scenario, compatibility))
        .with_context(|| format!("{at} is no cluster"))?;
    let answer = gang::answer(&scenario, &loaded);
    match arguments.output {
        Output::Json => pretty(&gang::told(&loaded, &answer)),
        Output::Human => {
            let mut told = String::new();
            gang::tell(&mut told, &loaded, &answer)?;
            Ok(told)
        }
    }
}

fn of_job(value: Value, at: &str, arguments: &Arguments) -> Result<String, Error> {
    if arguments.compatibility.is_some() {
        return Err(anyhow!(
            "jobs under elastic quotas are decided in one way; leave --compatibility out"
        ));
    }
    let told = job::Case::of(value).and_then(|it| it.decide());
    let told = told.with_context(|| format!("{at} is no scenario"))?;
    match arguments.output {
        Output::Human => Ok(told.text),
        Output::Json => pretty(&json!({"decision": told.decision, "trace": told.trace})),
    }
}
