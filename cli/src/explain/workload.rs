//! Answers about one workload of a cluster or of a dump.

use super::arguments::{Arguments, CompatibilityTarget, Output, to_pretty_json};
use crate::Failure;
use crate::world_source::Scheduler;
use anyhow::{Error, anyhow};
use lockkeeper_explain::{Selector, explain, write_answer};

/// Reads the objects, and returns the answer as text or JSON.
pub(super) fn explain_workload(subject: &str, arguments: &Arguments) -> Result<String, Failure> {
    let scheduler = scheduler(arguments.compatibility).map_err(Failure::Usage)?;
    // An invalid name is reported before the objects are read.
    Selector::parse(subject, None).map_err(|error| Failure::Usage(error.into()))?;
    let loaded = arguments.source.load(scheduler)?;
    let selector = Selector::parse(subject, loaded.namespace.as_deref());
    let selector = selector.map_err(|error| Failure::Usage(error.into()))?;
    let world = &loaded.world;
    let found = world.find(&selector).map(str::to_owned);
    let key = found.map_err(|error| Failure::Other(error.into()))?;
    let answer = explain(world, &key);
    let answer = answer.ok_or_else(|| anyhow!("there is no Workload {key}"))?;
    let text = match arguments.output {
        Output::Json => to_pretty_json(&answer)?,
        Output::Human => {
            let mut text = String::new();
            write_answer(&mut text, &answer)?;
            text
        }
    };
    Ok(text)
}

fn scheduler(target: Option<CompatibilityTarget>) -> Result<Option<Scheduler>, Error> {
    match target {
        None => Ok(None),
        Some(CompatibilityTarget::Lockkeeper) => Ok(Some(Scheduler::Lockkeeper)),
        Some(CompatibilityTarget::Kueue) => Ok(Some(Scheduler::Kueue)),
        Some(CompatibilityTarget::KubeScheduler) => Err(anyhow!(
            "kube-scheduler has no queues; set --compatibility to kueue or lockkeeper"
        )),
    }
}
