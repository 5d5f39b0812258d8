//! What the scheduler does with a pending workload if nothing changes.

use crate::answer::Forecast;
use crate::node_placement::place;
use crate::world::World;
use lockkeeper_cluster_state::pending_reason::{decision_message, decision_reason};
use lockkeeper_cluster_state::placement_state::PlacementState;
use lockkeeper_cluster_state::{ClusterState, FlavorSearches, admission};
use lockkeeper_preemption::{Decision, Entry, State};

/// The most cycles that are run.
const CYCLES_MAX: usize = 10_000;

/// The forecast, with reason and message of the last decision on the workload.
pub(crate) struct Forecasted {
    pub(crate) forecast: Forecast,
    /// `None` if no cycle considers it.
    pub(crate) reason: Option<(&'static str, String)>,
    /// When backfill starts it at the latest, in seconds since 1970, if other queues cannot delay it.
    pub(crate) starts_by_s: Option<i64>,
    /// The nodes without the room of the workloads that are admitted before it; `None` without nodes.
    pub(crate) nodes: Option<PlacementState>,
}

/// Runs cycles on a copy of the state until the workload is admitted or preempts, or no cycle changes anything. Other
/// workloads of ClusterQueues with placement are admitted if they fit on nodes.
pub(crate) fn forecast(world: &World, mut cluster: ClusterState, key: &str) -> Forecasted {
    let mut nodes = world.nodes.clone();
    let mut admitted_before = 0_usize;
    let mut reason = None;
    let now_ms = cluster.now_ms();
    let mut searches = FlavorSearches::default();
    for _ in 0..CYCLES_MAX {
        let cycle = cluster.next_cycle(now_ms, true);
        let mut has_progress = cycle.has_reactivated || !cycle.out_of_scope.is_empty();
        for entry in &cycle.entries {
            if cluster.state().workload_name(entry.workload) == key {
                reason = Some((
                    decision_reason(&entry.decision),
                    decision_message(cluster.state(), entry),
                ));
                if let Some(forecast) = final_decision(cluster.state(), entry, admitted_before) {
                    return Forecasted {
                        forecast,
                        reason,
                        starts_by_s: None,
                        nodes,
                    };
                }
            } else if entry.decision == Decision::Admit {
                has_progress = true;
                if place_other(world, &mut cluster, nodes.as_mut(), entry) {
                    admitted_before = admitted_before.saturating_add(1);
                }
            }
            has_progress |= searches.record(cluster.state(), entry);
        }
        has_progress |= searches.requeue(&mut cluster);
        if !has_progress {
            let mut bounds = cycle.start_bounds.iter();
            let bound = bounds.find(|it| cluster.state().workload_name(it.workload) == key);
            return Forecasted {
                forecast: Forecast::Waits { admitted_before },
                reason,
                starts_by_s: bound.filter(|it| it.is_guaranteed).map(|it| it.starts_by_s),
                nodes,
            };
        }
    }
    Forecasted {
        forecast: Forecast::Unknown,
        reason,
        starts_by_s: None,
        nodes,
    }
}

/// Places another workload that a cycle admits. One that does not fit on nodes is kept out of its queue, and false is returned.
fn place_other(
    world: &World,
    cluster: &mut ClusterState,
    nodes: Option<&mut PlacementState>,
    entry: &Entry,
) -> bool {
    let key = cluster.state().workload_name(entry.workload).to_owned();
    let (Some(nodes), Some(workload)) = (nodes, world.workload(&key)) else {
        return true;
    };
    let Some(admission) = admission(cluster.state(), entry.workload, entry.assignment()) else {
        return true;
    };
    let is_placed = place(cluster, nodes, workload, &admission);
    if !is_placed {
        cluster.revert_admission(&key);
        cluster.hold_until(&key, i64::MAX);
    }
    is_placed
}

fn final_decision(state: &State, entry: &Entry, admitted_before: usize) -> Option<Forecast> {
    match &entry.decision {
        Decision::Admit => Some(Forecast::Admitted { admitted_before }),
        Decision::Preempt(victims) => {
            let names = victims
                .iter()
                .map(|it| state.workload_name(it.workload).to_owned());
            Some(Forecast::Preempts {
                admitted_before,
                victims: names.collect(),
            })
        }
        _ => None,
    }
}
