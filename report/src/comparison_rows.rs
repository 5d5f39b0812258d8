//! The measures of simulations side by side.

use crate::amount_text::{number_text, percent_text};
use crate::quota_steps::{cohort_quota, queue_quota};
use crate::quota_tree::QuotaTree;
use crate::simulation::Simulation;
use crate::step_series::{Steps, integral, sum_steps};
use crate::time_text::duration_text;
use lockkeeper_simulate::timeline::{Outcome, PodsReadyStats, Stats};
use std::collections::BTreeSet;

/// A measure of a simulation.
#[derive(Clone, Copy, Debug)]
struct Measure {
    name: &'static str,
    value: fn(&Simulation<'_>) -> i64,
    text: fn(i64) -> String,
}

const MEASURES: [Measure; 7] = [
    Measure {
        name: "Makespan",
        value: |it| it.timeline.makespan_s,
        text: duration_text,
    },
    Measure {
        name: "Workloads",
        value: |it| count(it.timeline.stats.jobs),
        text: number_text,
    },
    Measure {
        name: "Finished",
        value: |it| count(it.timeline.stats.finished),
        text: number_text,
    },
    Measure {
        name: "Never admitted",
        value: |it| count(it.timeline.stats.never_admitted),
        text: number_text,
    },
    Measure {
        name: "Admissions",
        value: |it| count(it.timeline.stats.admissions),
        text: number_text,
    },
    Measure {
        name: "Backfilled",
        value: |it| count(it.timeline.stats.backfilled),
        text: number_text,
    },
    Measure {
        name: "Preemptions",
        value: |it| count(it.timeline.stats.preemptions),
        text: number_text,
    },
];

/// The waits.
const WAIT_MEASURES: [Measure; 5] = [
    Measure {
        name: "Median wait",
        value: |it| it.timeline.stats.wait.p50,
        text: duration_text,
    },
    Measure {
        name: "90 % wait",
        value: |it| it.timeline.stats.wait.p90,
        text: duration_text,
    },
    Measure {
        name: "95 % wait",
        value: |it| it.timeline.stats.wait.p95,
        text: duration_text,
    },
    Measure {
        name: "99 % wait",
        value: |it| it.timeline.stats.wait.p99,
        text: duration_text,
    },
    Measure {
        name: "Longest wait",
        value: |it| it.timeline.stats.wait.max,
        text: duration_text,
    },
];

/// The measures of simulations that say when pods are ready.
const PODS_READY_MEASURES: [Measure; 4] = [
    Measure {
        name: "Evictions, pods not ready",
        value: |it| pods_ready(it, |stats| count(stats.evictions)),
        text: number_text,
    },
    Measure {
        name: "Requeued after backoff",
        value: |it| pods_ready(it, |stats| count(stats.requeues)),
        text: number_text,
    },
    Measure {
        name: "Deactivated",
        value: |it| pods_ready(it, |stats| count(stats.deactivated)),
        text: number_text,
    },
    Measure {
        name: "Time without ready pods",
        value: |it| pods_ready(it, |stats| stats.not_ready_seconds),
        text: duration_text,
    },
];

fn pods_ready(simulation: &Simulation<'_>, value: impl Fn(&PodsReadyStats) -> i64) -> i64 {
    let stats = simulation.timeline.stats.pods_ready.as_ref();
    stats.map(value).unwrap_or_default()
}

/// The name of the lost time: preemption is one of several kinds of eviction.
pub(crate) fn lost_name(stats: &Stats) -> &'static str {
    if stats.pods_ready.is_some() {
        "Lost by eviction"
    } else {
        "Lost by preemption"
    }
}

/// The evictions by reason as a sentence, if there are any because pods were not ready.
pub(crate) fn eviction_reasons(stats: &Stats) -> Option<String> {
    let reasons = stats.pods_ready.as_ref()?.evictions_by_reason.iter();
    let reasons: Vec<String> = reasons
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    (!reasons.is_empty()).then(|| format!("Evictions by reason: {}.", reasons.join(", ")))
}

/// A value of one simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ComparisonCell {
    pub(crate) text: String,
    /// The difference from the first configuration of the same trace, with its sign; `None` without a difference.
    pub(crate) change: Option<String>,
}

/// A measure of all simulations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ComparisonRow {
    pub(crate) name: String,
    /// By simulation.
    pub(crate) cells: Vec<ComparisonCell>,
}

/// Returns the word for an outcome.
pub(crate) fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Drained => "drained",
        Outcome::Stuck => "stuck",
        Outcome::Livelock => "livelock",
        Outcome::Loop => "loop",
        Outcome::Recorded => "recorded",
    }
}

/// Returns the measures of all simulations, with differences from the first one of the same trace.
pub(crate) fn comparison_rows(simulations: &[Simulation<'_>]) -> Vec<ComparisonRow> {
    let outcomes = simulations.iter();
    let outcomes = outcomes.map(|it| plain_cell(outcome_text(it.timeline.outcome).to_owned()));
    let outcome = ComparisonRow {
        name: "Outcome".to_owned(),
        cells: outcomes.collect(),
    };
    let measures = measures(simulations).into_iter().map(|measure| {
        let cells = simulations.iter().enumerate();
        let cells = cells.map(|(at, it)| measure_cell(&measure, it, baseline(simulations, at)));
        ComparisonRow {
            name: measure.name.to_owned(),
            cells: cells.collect(),
        }
    });
    let resources = resources(simulations).into_iter();
    let uses = resources.map(|resource| ComparisonRow {
        name: format!("Mean use of {resource}"),
        cells: simulations
            .iter()
            .map(|it| plain_cell(use_text(it, resource)))
            .collect(),
    });
    std::iter::once(outcome)
        .chain(measures)
        .chain(uses)
        .collect()
}

/// The measures up to the preemptions, what is lost, and the waits.
fn measures(simulations: &[Simulation<'_>]) -> Vec<Measure> {
    let with_readiness = simulations
        .iter()
        .map(|it| &it.timeline.stats)
        .find(|it| it.pods_ready.is_some());
    let lost = Measure {
        name: with_readiness.map_or("Lost by preemption", lost_name),
        value: |it| it.timeline.stats.lost_seconds,
        text: duration_text,
    };
    let mut measures = MEASURES.to_vec();
    if with_readiness.is_some() {
        measures.extend(PODS_READY_MEASURES);
    }
    measures.push(lost);
    measures.extend(WAIT_MEASURES);
    measures
}

fn plain_cell(text: String) -> ComparisonCell {
    ComparisonCell { text, change: None }
}

/// The first simulation of the same trace, if it is another one.
fn baseline<'a, 'b>(simulations: &'a [Simulation<'b>], at: usize) -> Option<&'a Simulation<'b>> {
    let id = simulations.get(at)?.id;
    let first = simulations.iter().position(|it| it.id == id)?;
    simulations.get(first).filter(|_| first < at)
}

fn measure_cell(
    measure: &Measure,
    it: &Simulation<'_>,
    first: Option<&Simulation<'_>>,
) -> ComparisonCell {
    let value = (measure.value)(it);
    let change = first.map(|first| value.saturating_sub((measure.value)(first)));
    let change = change.filter(|it| *it != 0);
    ComparisonCell {
        text: (measure.text)(value),
        change: change.map(|it| {
            let sign = if it > 0 { "+" } else { "−" };
            format!("{sign}{}", (measure.text)(it.saturating_abs()))
        }),
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn resources<'a>(simulations: &[Simulation<'a>]) -> BTreeSet<&'a str> {
    let usage = simulations.iter().flat_map(|it| &it.timeline.usage);
    usage.map(|it| it.resource.as_str()).collect()
}

/// The use of a resource in all trees, as a part of their nominal quota, until the makespan or the end of a loop.
fn use_text(it: &Simulation<'_>, resource: &str) -> String {
    let usage = it.timeline.usage.iter();
    let usage = usage.filter(|it| it.resource == resource);
    let used = usage.map(|it| i128::from(it.integral));
    let used = used.fold(0, i128::saturating_add);
    let tree = QuotaTree::new(it.trace);
    let quotas = tree.nodes.iter().map(|node| match node.queue {
        Some(queue) => queue_quota(it.trace, queue, resource).nominal,
        None => cohort_quota(it.trace, node.name, resource),
    });
    let quotas: Vec<Steps> = quotas.collect();
    let nominal = integral(&sum_steps(&quotas), it.timeline.measured_until_s());
    percent_text(used, nominal)
}
