//! The answer about a pending workload.

use crate::answer::{Answer, Forecast, Position, Victim};
use crate::candidates::candidates;
use crate::capacity::first_excesses;
use crate::changes::smallest_changes;
use crate::count_text::{count, count_are};
use crate::forecast::Forecasted;
use crate::identity::queue_name;
use crate::quota::requested_quota;
use crate::trial::{Outcome, Trial};
use lockkeeper_api::cluster_queue::QueueingStrategy;
use lockkeeper_cluster_state::pending_reason::{PENDING, RESOURCE_NOT_COVERED};
use lockkeeper_cluster_state::placement_state::PlacementState;
use lockkeeper_cluster_state::uncovered_resources_message;
use lockkeeper_preemption::{Mode, Trace, WhatIf};

/// The most workloads ahead that are named.
const AHEAD_MAX: usize = 5;

/// What follows from the cycles of the forecast.
pub(crate) struct PendingOutlook {
    /// Its start by backfill, in seconds since 1970, if it is the head of its queue and other queues cannot delay it.
    pub(crate) starts_by_s: Option<i64>,
    /// The nodes without the room of the workloads that are admitted before it; `None` without nodes.
    pub(crate) nodes: Option<PlacementState>,
}

/// Completes the answer about a workload that is in a queue without quota, with the forecast for it.
pub(crate) fn explain_pending(
    trial: &mut Trial,
    forecasted: Forecasted,
    answer: &mut Answer,
) -> PendingOutlook {
    let position = position(trial);
    answer.quota = requested_quota(trial);
    if let Some((reason, message)) = forecasted.reason {
        reason.clone_into(&mut answer.reason);
        answer.message = message;
    }
    if let Some(message) = uncovered_resources_message(&trial.cluster, &trial.workload) {
        RESOURCE_NOT_COVERED.clone_into(&mut answer.reason);
        answer.message = message;
    }
    if answer.reason.is_empty() {
        PENDING.clone_into(&mut answer.reason);
    }
    let alone = nominate(trial, answer);
    if alone == Outcome::DoesNotFit {
        answer.changes = smallest_changes(trial);
    }
    answer.summary = summary(
        trial,
        answer,
        alone,
        position.as_ref(),
        &forecasted.forecast,
    );
    answer.position = position;
    answer.forecast = Some(forecasted.forecast);
    PendingOutlook {
        starts_by_s: forecasted.starts_by_s,
        nodes: forecasted.nodes,
    }
}

/// Decides on the workload alone: its victims, and the candidates.
fn nominate(trial: &mut Trial, answer: &mut Answer) -> Outcome {
    let Some(id) = trial.id() else {
        return Outcome::DoesNotFit;
    };
    let nomination = WhatIf::new(trial.cluster.state_mut()).nominate(id, Trace::on());
    let Some(nomination) = nomination else {
        return Outcome::DoesNotFit;
    };
    if nomination.assignment.mode == Mode::Fit {
        return Outcome::Fits;
    }
    let state = trial.cluster.state();
    let victims = nomination.victims.iter().map(|it| {
        let view = state.workload_view(it.workload);
        Victim {
            workload: state.workload_name(it.workload).to_owned(),
            cluster_queue: queue_name(state, it.workload),
            preemption_priority: view.preemption_priority(),
            reason: it.reason.as_str(),
        }
    });
    answer.victims = victims.collect();
    answer.candidates = candidates(trial, &nomination.trace, &nomination.victims);
    match nomination.victims.len() {
        0 => Outcome::DoesNotFit,
        victims => Outcome::FitsAfterPreempting(victims),
    }
}

fn position(trial: &Trial) -> Option<Position> {
    let id = trial.id()?;
    let state = trial.cluster.state();
    let queue = state.workload_view(id).queue()?;
    let pending = state.node_view(queue).pending();
    let in_cluster_queue = pending.iter().position(|it| *it == id)?;
    let ahead = pending.iter().take(in_cluster_queue.min(AHEAD_MAX));
    Some(Position {
        in_cluster_queue,
        pending: pending.len(),
        ahead: ahead
            .map(|it| state.workload_name(*it).to_owned())
            .collect(),
        may_overtake: trial.queue.spec.queueing_strategy != Some(QueueingStrategy::StrictFIFO),
    })
}

fn summary(
    trial: &Trial,
    answer: &Answer,
    alone: Outcome,
    position: Option<&Position>,
    forecast: &Forecast,
) -> String {
    let ahead = position.map_or(0, |it| it.in_cluster_queue);
    let ahead = match ahead {
        0 => "no workload is ahead of it in its ClusterQueue".to_owned(),
        1 => "1 workload is ahead of it in its ClusterQueue".to_owned(),
        more => format!("{more} workloads are ahead of it in its ClusterQueue"),
    };
    match forecast {
        Forecast::Admitted { admitted_before: 0 } => "is admitted in the next cycle".to_owned(),
        Forecast::Admitted { admitted_before } => {
            format!(
                "is admitted in the next cycles, after {}",
                count(*admitted_before, "other workload")
            )
        }
        Forecast::Preempts { victims, .. } => format!(
            "preempts {} and waits for the quota to be released",
            count(victims.len(), "workload")
        ),
        Forecast::Waits { .. } | Forecast::Unknown => match alone {
            Outcome::Fits => match forecast {
                Forecast::Waits { admitted_before } if *admitted_before > 0 => format!(
                    "would fit alone, and {} admitted before it; {ahead}",
                    count_are(*admitted_before)
                ),
                _ => format!("would fit alone, and {ahead}"),
            },
            Outcome::FitsAfterPreempting(victims) => format!(
                "would fit alone after preempting {}, and {ahead}",
                count(victims, "workload")
            ),
            Outcome::DoesNotFit => match excess(trial) {
                _ if answer.reason == RESOURCE_NOT_COVERED => {
                    format!("cannot be admitted: {}", answer.message)
                }
                Some(excess) => excess,
                None => format!("{}; {ahead}", shortage(answer)),
            },
        },
    }
}

/// The requests that do not fit even if no other workload uses quota.
fn excess(trial: &Trial) -> Option<String> {
    let (pod_set, excesses) = first_excesses(trial)?;
    let queue = trial.queue.metadata.name.as_deref().unwrap_or_default();
    let requests = excesses.iter().map(|it| {
        format!(
            "{} {}, of which ClusterQueue {queue} can use at most {} of one flavor",
            it.requested, it.resource, it.most
        )
    });
    let requests: Vec<String> = requests.collect();
    Some(format!(
        "never fits: pod set {pod_set} requests {}",
        requests.join(" and ")
    ))
}

/// What is missing, of the flavor that lacks the least kinds of resources.
fn shortage(answer: &Answer) -> String {
    let short = |flavor: &str| {
        let of_flavor = answer.quota.iter().filter(move |it| it.flavor == flavor);
        let short: Vec<_> = of_flavor.filter(|it| it.short != "0").collect();
        short
    };
    let mut flavors: Vec<&str> = answer.quota.iter().map(|it| it.flavor.as_str()).collect();
    flavors.dedup();
    let all = flavors.into_iter().map(short);
    let Some(short) = all.filter(|it| !it.is_empty()).min_by_key(Vec::len) else {
        return format!("cannot be admitted: {}", answer.message);
    };
    let amounts = short
        .iter()
        .map(|it| format!("{} more {} of flavor {}", it.short, it.resource, it.flavor));
    let amounts: Vec<String> = amounts.collect();
    let limit = short
        .first()
        .map(|it| format!(", limited by {}", it.limited_by));
    format!(
        "needs {}{}",
        amounts.join(" and "),
        limit.unwrap_or_default()
    )
}
