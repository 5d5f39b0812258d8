//! Scenarios of queues.

use super::arguments::{Arguments, CompatibilityTarget};
use super::node_scenarios::explain_node_scenario;
use super::selected_scenario::select_scenario;
use anyhow::{Context, Error, anyhow};
use lockkeeper_preemption::{Compatibility, Entry, State};
use lockkeeper_scenario::explanation;
use lockkeeper_scenario::{LoadedScenario, Scenario, compatibility, load};
use serde_json::{Value, json};
use std::path::Path;

/// Decides the scenario of a file, and returns the decision with its explanation.
pub(super) fn explain_scenario_file(file: &Path, arguments: &Arguments) -> Result<String, Error> {
    let selected = select_scenario(file, arguments.scenario.id.as_deref())?;
    if let Some(text) = explain_node_scenario(&selected, arguments)? {
        return Ok(text);
    }
    selected.reject_mistakes()?;
    let scenario: Scenario = selected.decode()?;
    let compatibility = match arguments.compatibility {
        Some(CompatibilityTarget::Lockkeeper) => Compatibility::Lockkeeper,
        Some(CompatibilityTarget::Kueue) => Compatibility::Kueue,
        Some(CompatibilityTarget::KubeScheduler) => {
            return Err(anyhow!(
                "kube-scheduler has no queues; set --compatibility to kueue or lockkeeper"
            ));
        }
        None => compatibility(&scenario),
    };
    let shown = file.display();
    let loaded = load(&scenario, compatibility)
        .with_context(|| format!("{shown} is not a valid cluster state"))?;
    explain_scenario(&scenario, loaded, arguments)
}

fn explain_scenario(
    scenario: &Scenario,
    mut loaded: LoadedScenario,
    arguments: &Arguments,
) -> Result<String, Error> {
    let Some(id) = loaded.incoming else {
        return explain_cycle(scenario, &mut loaded.state, arguments);
    };
    let incoming = loaded.state.workload_name(id);
    if let Some(wanted) = &arguments.scenario.workload
        && wanted != incoming
    {
        return Err(anyhow!(
            "{wanted:?} is not the incoming workload, which is {incoming:?}; a scenario with incoming explains only that one"
        ));
    }
    let nomination = loaded.nominate(scenario);
    let nomination = nomination.ok_or_else(|| anyhow!("the incoming workload does not exist"))?;
    let state = &loaded.state;
    let name = state.workload_name(id);
    let data = || explanation::nomination_json(state, name, &nomination);
    let text = || {
        let mut text = String::new();
        explanation::write_nomination(&mut text, state, name, &nomination)?;
        Ok(text)
    };
    arguments.output.format(data, text)
}

fn explain_cycle(
    scenario: &Scenario,
    state: &mut State,
    arguments: &Arguments,
) -> Result<String, Error> {
    let cycle = state.next_cycle(scenario.now, true);
    let is_wanted = |entry: &&Entry| {
        let wanted = arguments.scenario.workload.as_deref();
        wanted.is_none_or(|name| state.workload_name(entry.workload) == name)
    };
    let entries: Vec<&Entry> = cycle.entries.iter().filter(is_wanted).collect();
    if let Some(name) = &arguments.scenario.workload
        && entries.is_empty()
    {
        let why = match state.workload(name) {
            Some(_) => "it is not at the head of its queue, or the queue admits nothing",
            None => "the workload does not exist",
        };
        return Err(anyhow!("{name:?} is not part of this cycle: {why}"));
    }
    let data = || {
        let entries = entries.iter().map(|it| explanation::entry_json(state, it));
        let entries: Vec<Value> = entries.collect();
        json!({"entries": entries})
    };
    let text = || {
        let mut text = String::new();
        for (at, entry) in entries.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            explanation::write_entry(&mut text, state, entry)?;
        }
        if text.is_empty() {
            text.push_str("no pending workload at the head of an active queue\n");
        }
        Ok(text)
    };
    arguments.output.format(data, text)
}
