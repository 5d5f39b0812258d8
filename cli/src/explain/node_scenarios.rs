//! Scenarios that are not about queues: pods and gangs on nodes, and jobs under elastic quotas.

use super::{Arguments, CompatibilityTarget, Output, parse, to_pretty_json};
use anyhow::{Context, Error, anyhow};
use lockkeeper_preemption::gang::SchedulerCompatibility;
use lockkeeper_scenario::{gang, job};
use serde_json::{Value, json};

/// The answer, if it is such a scenario.
pub(super) fn explain_node_scenario(
    text: &str,
    at: &str,
    arguments: &Arguments,
) -> Result<Option<String>, Error> {
    // What is no JSON or YAML is told by who reads it as its type.
    let Ok(value) = parse::<Value>(text) else {
        return Ok(None);
    };
    let (is_job, is_gang) = (
        job::Case::is_job_case(&value),
        gang::is_gang_scenario(&value),
    );
    if (is_job || is_gang) && arguments.workload.is_some() {
        return Err(anyhow!(
            "--workload is for queues; here the preemptor is decided on"
        ));
    }
    match (is_job, is_gang) {
        (true, _) => explain_job(value, at, arguments).map(Some),
        (false, true) => explain_gang(text, at, arguments).map(Some),
        (false, false) => Ok(None),
    }
}

fn explain_gang(text: &str, at: &str, arguments: &Arguments) -> Result<String, Error> {
    let compatibility = match arguments.compatibility {
        Some(CompatibilityTarget::Lockkeeper) => Some(SchedulerCompatibility::Lockkeeper),
        Some(CompatibilityTarget::KubeScheduler) => Some(SchedulerCompatibility::KubeScheduler),
        Some(CompatibilityTarget::Kueue) => {
            return Err(anyhow!(
                "Kueue knows no nodes; give kube-scheduler or lockkeeper"
            ));
        }
        None => None,
    };
    // From the text once more, so that a mistake is told with its place.
    let scenario: gang::GangScenario =
        parse(text).with_context(|| format!("{at} is no scenario"))?;
    let loaded = gang::load(&scenario, gang::options(&scenario, compatibility))
        .with_context(|| format!("{at} is no cluster"))?;
    let answer = gang::evaluate(&scenario, &loaded);
    match arguments.output {
        Output::Json => to_pretty_json(&gang::to_json(&loaded, &answer)),
        Output::Human => {
            let mut told = String::new();
            gang::write_text(&mut told, &loaded, &answer)?;
            Ok(told)
        }
    }
}

fn explain_job(value: Value, at: &str, arguments: &Arguments) -> Result<String, Error> {
    if arguments.compatibility.is_some() {
        return Err(anyhow!(
            "jobs under elastic quotas are decided in one way; leave --compatibility out"
        ));
    }
    let told = job::Case::parse(value).and_then(|it| it.decide());
    let told = told.with_context(|| format!("{at} is no scenario"))?;
    match arguments.output {
        Output::Human => Ok(told.text),
        Output::Json => to_pretty_json(&json!({"decision": told.decision, "trace": told.trace})),
    }
}
