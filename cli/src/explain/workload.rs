//! Answers about one workload of a cluster or of a dump.

use super::arguments::{Arguments, CompatibilityTarget};
use super::decision_report::decision_page;
use super::manifest::read_workload;
use crate::Failure;
use crate::world_source::{ReadObjects, Scheduler};
use anyhow::{Error, anyhow};
use lockkeeper_explain::{Answer, Selector, World, explain, write_answer};

/// An answer.
pub(super) struct Explanation {
    /// In the format of the output.
    pub(super) text: String,
    /// The page, if it is requested.
    pub(super) report: Option<String>,
}

/// Reads the objects, and returns the answer about a workload as text or data.
pub(super) fn explain_workload(
    subject: &str,
    arguments: &Arguments,
) -> Result<Explanation, Failure> {
    let scheduler = scheduler(arguments.compatibility).map_err(Failure::Usage)?;
    // An invalid name is reported before the objects are read.
    Selector::parse(subject, None).map_err(|error| Failure::Usage(error.into()))?;
    let loaded = arguments
        .source
        .load(arguments.namespace.as_deref(), scheduler)?;
    let selector = Selector::parse(subject, loaded.namespace.as_deref());
    let selector = selector.map_err(|error| Failure::Usage(error.into()))?;
    let found = loaded.world.find(&selector).map(str::to_owned);
    let key = found.map_err(|error| Failure::Other(error.into()))?;
    explanation(&loaded.world, &key, arguments)
}

/// Reads the objects, and returns the answer about the job or workload of a manifest, if it were submitted now.
pub(super) fn explain_manifest(arguments: &Arguments) -> Result<Explanation, Failure> {
    let scheduler = scheduler(arguments.compatibility).map_err(Failure::Usage)?;
    let Some(file) = &arguments.filename else {
        // clap requires one of them.
        return Err(Failure::Usage(anyhow!(
            "name a workload, or set --filename"
        )));
    };
    let mut key = String::new();
    let submit = |read: &mut ReadObjects| {
        let manifest = read_workload(file, read.namespace.as_deref(), &read.job_kinds)?;
        let submitted = read.builder.submit(manifest);
        key = submitted.map_err(|error| anyhow!("{}: {error}", file.display()))?;
        Ok(())
    };
    let namespace = arguments.namespace.as_deref();
    let loaded = arguments.source.load_with(namespace, scheduler, submit)?;
    explanation(&loaded.world, &key, arguments)
}

fn explanation(world: &World, key: &str, arguments: &Arguments) -> Result<Explanation, Failure> {
    let answer = explain(world, key).ok_or_else(|| anyhow!("there is no Workload {key}"))?;
    let report = match &arguments.report {
        Some(_) => Some(decision_page(world, key, &answer, answer_text(&answer)?)),
        None => None,
    };
    let text = arguments
        .output
        .format(|| &answer, || answer_text(&answer))?;
    Ok(Explanation { text, report })
}

fn answer_text(answer: &Answer) -> Result<String, Error> {
    let mut text = String::new();
    write_answer(&mut text, answer)?;
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
