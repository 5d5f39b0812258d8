//! Single pods as preemptors: every node is a domain.

use super::context::DecisionContext;
use super::domain::Domain;
use super::reason::InfeasibleReason;
use super::request::{GangOutcome, GangPlan, NodeSample};
use super::score::{CascadeEstimator, Score};
use super::search::DomainSearch;
use super::trace::{GangStep, GangTrace};
use crate::amount::Amount;
use crate::ids::{HostId, ResourceId};
use crate::placement::{ResourceVec, Shape};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The search results of all domains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRun {
    /// The feasible plans in search order, those without budget violations first.
    pub candidates: Vec<GangPlan>,
    /// The infeasible nodes (`None` for the cluster), each with its reason.
    pub infeasible: Vec<(Option<HostId>, InfeasibleReason)>,
}

/// Searches every domain of the request.
pub(super) fn dry_run(context: &DecisionContext<'_>, trace: &mut GangTrace) -> DryRun {
    let mut violating = Vec::new();
    let mut run = DryRun::default();
    if context.request.group.is_some() {
        match context.plan_for_gang(trace) {
            Ok(plan) => run.candidates.push(plan),
            Err(reason) => run.infeasible.push((None, reason)),
        }
        return run;
    }
    search_nodes(context, trace, |result| match result {
        NodeSearchResult::Plan(plan) if plan.violations > 0 => violating.push(plan),
        NodeSearchResult::Plan(plan) => run.candidates.push(plan),
        NodeSearchResult::Infeasible(host, reason) => run.infeasible.push((Some(host), reason)),
    });
    let count = context.request.sample.map_or(usize::MAX, |it| it.count);
    run.candidates.truncate(count);
    violating.truncate(count);
    run.candidates.append(&mut violating);
    run
}

/// Chooses the node with the lowest cost; the first of equals.
pub(super) fn best_node(context: &DecisionContext<'_>, trace: &mut GangTrace) -> GangOutcome {
    if let Some(plan) = promising_node(context, trace) {
        return GangOutcome::Preempt(plan);
    }
    let mut best: Option<GangPlan> = None;
    let mut domains = Vec::new();
    search_nodes(context, trace, |result| match result {
        NodeSearchResult::Plan(plan) => {
            // The first of equals; kube-scheduler leaves this to the order of a Go map.
            if best.as_ref().is_none_or(|it| plan.score < it.score) {
                best = Some(plan);
            }
        }
        NodeSearchResult::Infeasible(host, reason) => domains.push((Some(host), reason)),
    });
    match best {
        Some(plan) => {
            trace.record(|| GangStep::Chosen { host: plan.host });
            GangOutcome::Preempt(plan)
        }
        None => GangOutcome::Infeasible { domains },
    }
}

/// The same node as a search of all nodes, found by searching only nodes that may be the best; `None` if all have to be
/// searched: for a trace, for a sample or a fixed placement, with kube-scheduler's costs, and if no node is feasible.
///
/// The victims on a node have at least the priority of its lowest cutoff. So once a plan has neither cascades nor
/// violations, a node with a higher cutoff than the plan's highest priority costs more, and is not searched.
fn promising_node(context: &DecisionContext<'_>, trace: &mut GangTrace) -> Option<GangPlan> {
    let (state, request) = (context.state, context.request);
    let is_limited = request.sample.is_some() || request.fixed_placement.is_some();
    if trace.is_on() || is_limited || !context.is_lockkeeper() {
        return None;
    }
    let shape = state.cluster.shape_of(*context.preemptor.shapes.first()?);
    // A heap: few of the nodes are taken out, so that sorting all of them would cost more.
    let mut candidates: BinaryHeap<_> = match request.hosts {
        Some(hosts) => candidates(context, shape, hosts.iter().copied()),
        None => candidates(context, shape, state.cluster.hosts()),
    };
    let mut cascades = CascadeEstimator::new(state, context.baseline);
    let mut best: Option<(Score, usize, GangPlan)> = None;
    while let Some(Reverse((cutoff, position, host))) = candidates.pop() {
        if let Some((score, ..)) = &best
            && score.cascades == 0
            && score.violations == 0
            && cutoff > score.highest_priority
        {
            break;
        }
        let domain = Domain::Host(host);
        let search = context.search(&domain, state.options.strategy);
        let result = check_node(context, &search, host).and_then(|()| {
            // The sums of a node have neither ports nor pods that restrict others, so their cutoff is only a bound then.
            let is_exact = !shape.has_host_ports() && context.preemptor.inter_pod.is_none();
            if is_exact && is_undisturbed(context, host) {
                Ok(search.run_at_cutoff(cutoff, host))
            } else {
                search.run(trace)
            }
        });
        let Some(result) = result.ok().filter(|it| !it.victims.is_empty()) else {
            continue;
        };
        let plan = context.plan(Some(host), result, &mut cascades);
        let is_better = best
            .as_ref()
            .is_none_or(|it| (plan.score, position) < (it.0, it.1));
        if is_better {
            best = Some((plan.score, position, plan));
        }
    }
    best.map(|(_, _, plan)| plan)
}

/// The lowest cutoff of each feasible node, its position and the node; the lowest first.
fn candidates(
    context: &DecisionContext<'_>,
    shape: &Shape,
    hosts: impl Iterator<Item = HostId>,
) -> BinaryHeap<Reverse<(i32, usize, HostId)>> {
    let mut missing = Vec::with_capacity(shape.requests.len());
    let cutoffs = hosts.enumerate().filter_map(|(position, host)| {
        let cutoff = lowest_cutoff(context, shape, host, &mut missing)?;
        Some(Reverse((cutoff, position, host)))
    });
    // Building a heap of a list costs less than one push after another.
    BinaryHeap::from(cutoffs.collect::<Vec<_>>())
}

/// Whether a node has the room that the state says, and no unit is protected: then the lowest cutoff is that of the search.
fn is_undisturbed(context: &DecisionContext<'_>, host: HostId) -> bool {
    let baseline = context.baseline;
    !context.state.units.has_protected()
        && !baseline.reserved.contains_key(&host)
        && !baseline.victims.contains_key(&host)
}

/// A lower bound of the priority of the most important victim on a node; `None` if the node is infeasible. `missing` is a
/// buffer.
fn lowest_cutoff(
    context: &DecisionContext<'_>,
    shape: &Shape,
    host: HostId,
    missing: &mut Vec<(ResourceId, Amount)>,
) -> Option<i32> {
    let state = context.state;
    // Victims of earlier decisions leave more room than the sums have.
    if context.baseline.victims.contains_key(&host) {
        return Some(i32::MIN);
    }
    let node = state.units.reclaimable.node(host)?;
    let free = state.cluster.host(host)?.free();
    missing.clear();
    for (resource, requested) in shape.resources() {
        let free = free.get(*resource);
        if *requested > free {
            missing.push((*resource, requested.minus(free)));
        }
    }
    let is_enough = |freed: &ResourceVec| {
        missing
            .iter()
            .all(|(resource, amount)| *amount <= freed.get(*resource))
    };
    node.lowest_cutoff(context.preemptor.priority, is_enough)
}

enum NodeSearchResult {
    Plan(GangPlan),
    Infeasible(HostId, InfeasibleReason),
}

/// Searches each node until there are enough candidates, and reports every result.
fn search_nodes(
    context: &DecisionContext<'_>,
    trace: &mut GangTrace,
    mut report: impl FnMut(NodeSearchResult),
) {
    let (state, request) = (context.state, context.request);
    let mut hosts: Vec<HostId> = match request.hosts {
        Some(hosts) => hosts.to_vec(),
        None => state.cluster.hosts().collect(),
    };
    let offset = request.sample.map_or(0, |it| it.offset);
    let offset = offset.checked_rem(hosts.len()).unwrap_or_default();
    // kube-scheduler draws the offset; here the caller gives it, so decisions are repeatable.
    hosts.rotate_left(offset);
    let mut cascades = CascadeEstimator::new(state, context.baseline);
    let (mut intact, mut violating) = (0_usize, 0_usize);
    for host in hosts {
        trace.record(|| GangStep::Domain { host: Some(host) });
        let domain = Domain::Host(host);
        let search = context.search(&domain, state.options.strategy);
        let result = check_node(context, &search, host).and_then(|()| search.run(trace));
        let result = match result {
            // kube-scheduler too reports a search without victims as an error of the node.
            Ok(result) if result.victims.is_empty() => Err(InfeasibleReason::PreemptionNotHelpful),
            result => result,
        };
        match result {
            Ok(result) => {
                let plan = context.plan(Some(host), result, &mut cascades);
                trace.record(|| GangStep::Scored { score: plan.score });
                match plan.score {
                    Score { violations: 0, .. } => intact = intact.saturating_add(1),
                    _ => violating = violating.saturating_add(1),
                }
                report(NodeSearchResult::Plan(plan));
            }
            Err(reason) => {
                trace.record(|| GangStep::Infeasible {
                    reason: reason.clone(),
                });
                report(NodeSearchResult::Infeasible(host, reason));
            }
        }
        let is_enough = |sample: NodeSample| {
            // kube-scheduler's candidate lists hold at most `count` plans of either kind.
            let candidates = intact
                .min(sample.count)
                .saturating_add(violating.min(sample.count));
            intact > 0 && candidates >= sample.count
        };
        if request.sample.is_some_and(is_enough) {
            return;
        }
    }
}

/// Returns an error if no victim can make the node feasible for the pod. With kube-scheduler's algorithm, explicit
/// nodes are not checked: the caller has filtered them.
fn check_node(
    context: &DecisionContext<'_>,
    search: &DomainSearch<'_>,
    host: HostId,
) -> Result<(), InfeasibleReason> {
    let state = context.state;
    let is_checked = context.is_lockkeeper() || context.request.hosts.is_none();
    let node = state.cluster.host(host).filter(|_| is_checked);
    let Some((node, shape)) = node.zip(search.preemptor.shapes.first()) else {
        return Ok(());
    };
    let shape = state.cluster.shape_of(*shape);
    if let Some(rejection) = shape.rejection_by(node, state.cluster.symbols()) {
        return Err(InfeasibleReason::Rejected(rejection));
    }
    // kube-scheduler searches only nodes on which a filter returned `Unschedulable`.
    if !context.is_lockkeeper() && search.is_enough(&search.place(None, &[])) {
        return Err(InfeasibleReason::PreemptionNotHelpful);
    }
    Ok(())
}
