//! Scenarios that are not about queues: pods and gangs on nodes, and jobs under elastic quotas.

use super::{Arguments, Output, Whose, parse, pretty};
use anyhow::{Context, Error, anyhow};
use lockkeeper_preemption::gang::Compatibility;
use lockkeeper_snapshot::{gang, job};
use serde_json::{Value, json};

/// The answer, if it is such a scenario.
pub(super) fn tell(text: &str, at: &str, arguments: &Arguments) -> Result<Option<String>, Error> {
    // Most name neither, and need not be read twice.
    if !["kind", "nodes"].iter().any(|it| text.contains(it)) {
        return Ok(None);
    }
    let Ok(value) = parse::<Value>(text) else {
        return Ok(None);
    };
    if job::Case::is_one(&value) {
        return of_job(value, arguments)
            .with_context(|| format!("{at} is no scenario"))
            .map(Some);
    }
    if gang::is_gang(&value) {
        return of_gang(text, at, arguments).map(Some);
    }
    Ok(None)
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
    if arguments.workload.is_some() {
        return Err(anyhow!(
            "--workload is for queues; here the preemptor is decided on"
        ));
    }
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

fn of_job(value: Value, arguments: &Arguments) -> Result<String, Error> {
    let told = job::Case::of(value)?.decide()?;
    match arguments.output {
        Output::Human => Ok(told.text),
        Output::Json => pretty(&json!({"decision": told.decision, "trace": told.trace})),
    }
}
