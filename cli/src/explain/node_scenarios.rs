//! Scenarios that are not about queues: pods and gangs on nodes, and jobs under elastic quotas.

use super::arguments::{Arguments, CompatibilityTarget};
use super::selected_scenario::SelectedScenario;
use anyhow::{Context, Error, anyhow};
use lockkeeper_preemption::gang::SchedulerCompatibility;
use lockkeeper_scenario::{gang, job};
use serde_json::{Value, json};

/// The explanation; `None` for a scenario of queues.
pub(super) fn explain_node_scenario(
    selected: &SelectedScenario,
    arguments: &Arguments,
) -> Result<Option<String>, Error> {
    // The caller decodes any other number of documents as a scenario of queues, and reports the error.
    let [document] = selected.source.documents.as_slice() else {
        return Ok(None);
    };
    let value = &document.value;
    let (is_job, is_gang) = (job::Case::is_job_case(value), gang::is_gang_scenario(value));
    if (is_job || is_gang) && arguments.scenario.workload.is_some() {
        return Err(anyhow!("--workload is for scenarios of queues; omit it"));
    }
    match (is_job, is_gang) {
        (true, _) => explain_job(value.clone(), &selected.place(), arguments).map(Some),
        (false, true) => explain_gang(selected, arguments).map(Some),
        (false, false) => Ok(None),
    }
}

fn explain_gang(selected: &SelectedScenario, arguments: &Arguments) -> Result<String, Error> {
    let compatibility = match arguments.compatibility {
        Some(CompatibilityTarget::Lockkeeper) => Some(SchedulerCompatibility::Lockkeeper),
        Some(CompatibilityTarget::KubeScheduler) => Some(SchedulerCompatibility::KubeScheduler),
        Some(CompatibilityTarget::Kueue) => {
            return Err(anyhow!(
                "Kueue has no nodes; set --compatibility to kube-scheduler or lockkeeper"
            ));
        }
        None => None,
    };
    let scenario: gang::GangScenario = selected.decode()?;
    let loaded = gang::load(&scenario, gang::options(&scenario, compatibility))
        .with_context(|| format!("{} is not a valid cluster state", selected.place()))?;
    let answer = gang::evaluate(&scenario, &loaded);
    let text = || {
        let mut text = String::new();
        gang::write_text(&mut text, &loaded, &answer)?;
        Ok(text)
    };
    let data = || gang::to_json(&loaded, &answer);
    arguments.output.format(data, text)
}

fn explain_job(value: Value, at: &str, arguments: &Arguments) -> Result<String, Error> {
    if arguments.compatibility.is_some() {
        return Err(anyhow!(
            "--compatibility does not apply to jobs under elastic quotas; omit it"
        ));
    }
    let decided = job::Case::parse(value).and_then(|it| it.decide());
    let decided = decided.with_context(|| format!("{at} is not a scenario"))?;
    let data = || json!({"decision": decided.decision, "trace": decided.trace});
    arguments.output.format(data, || Ok(decided.text.clone()))
}
