//! Single pods as preemptors: every node is a domain.

use super::cluster::GangCluster;
use super::decide::{GangOutcome, GangPlan, InfeasibleReason, PreemptionRequest};
use super::domain::Domain;
use super::hypothetical::{PriorityCutoff, SearchBaseline};
use super::score::{CascadeEstimator, Score};
use super::search::{DomainSearch, Preemptor};
use super::spec::SchedulerCompatibility;
use super::trace::{GangStep, GangTrace};
use crate::ids::HostId;
use crate::placement::Overlay;

/// What all domains came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRun {
    /// Those that will do, in the order in which they were looked at: those first that break no budget.
    pub candidates: Vec<GangPlan>,
    /// Nodes that will not, or `None` for the cluster, and why.
    pub infeasible: Vec<(Option<HostId>, InfeasibleReason)>,
}

impl GangCluster {
    /// Who would have to go in each domain so that a pod or a gang fits there, whether or not it fits already and may
    /// preempt.
    ///
    /// Source: kube-scheduler v1.37, `DryRunPreemption`.
    #[must_use]
    pub fn dry_run(&self, ask: &PreemptionRequest<'_>, trace: &mut GangTrace) -> DryRun {
        let mut ground = SearchBaseline::default();
        super::nomination::reserve_nominated(self, ask, &mut ground);
        let shapes = self.shapes(ask.pods);
        let preemptor = self.preemptor(ask, &shapes);
        let mut broken = Vec::new();
        let mut run = DryRun::default();
        if ask.group.is_some() {
            match self.search(ask, &ground, preemptor, trace) {
                Ok(plan) => run.candidates.push(plan),
                Err(why) => run.infeasible.push((None, why)),
            }
            return run;
        }
        search_nodes(self, ask, &ground, preemptor, trace, |seen| match seen {
            NodeSearchResult::Plan(plan) if plan.violations > 0 => broken.push(plan),
            NodeSearchResult::Plan(plan) => run.candidates.push(plan),
            NodeSearchResult::Infeasible(host, why) => run.infeasible.push((Some(host), why)),
        });
        let count = ask.sample.map_or(usize::MAX, |it| it.count);
        run.candidates.truncate(count);
        broken.truncate(count);
        run.candidates.append(&mut broken);
        run
    }
}

/// The node that costs the least; of equal ones the first.
pub(super) fn best_node(
    world: &GangCluster,
    ask: &PreemptionRequest<'_>,
    ground: &SearchBaseline,
    preemptor: Preemptor<'_>,
    trace: &mut GangTrace,
) -> GangOutcome {
    let mut best: Option<GangPlan> = None;
    let mut domains = Vec::new();
    search_nodes(world, ask, ground, preemptor, trace, |seen| match seen {
        NodeSearchResult::Plan(plan) => {
            if best.as_ref().is_none_or(|it| plan.score < it.score) {
                best = Some(plan);
            }
        }
        NodeSearchResult::Infeasible(host, why) => domains.push((Some(host), why)),
    });
    match best {
        Some(plan) => {
            trace.record(|| GangStep::Chosen { host: plan.host });
            GangOutcome::Preempt(plan)
        }
        None => GangOutcome::Infeasible { domains },
    }
}

enum NodeSearchResult {
    Plan(GangPlan),
    Infeasible(HostId, InfeasibleReason),
}

/// Looks at each node, until there are enough.
fn search_nodes(
    world: &GangCluster,
    ask: &PreemptionRequest<'_>,
    ground: &SearchBaseline,
    preemptor: Preemptor<'_>,
    trace: &mut GangTrace,
    mut see: impl FnMut(NodeSearchResult),
) {
    let mut hosts: Vec<HostId> = match ask.hosts {
        Some(hosts) => hosts.to_vec(),
        None => world.cluster.hosts().collect(),
    };
    let offset = ask.sample.map_or(0, |it| it.offset);
    let offset = offset.checked_rem(hosts.len()).unwrap_or_default();
    hosts.rotate_left(offset);
    let mut cascades = CascadeEstimator::new(world, ground);
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for host in hosts {
        trace.record(|| GangStep::Domain { host: Some(host) });
        let domain = Domain::Host(host);
        let search = DomainSearch {
            state: world,
            baseline: ground,
            preemptor,
            domain: &domain,
            strategy: world.options.strategy,
        };
        let found = match check_node(world, ask, &search, host) {
            Ok(()) => search.run(trace),
            Err(why) => Err(why),
        };
        let found = match found {
            Ok(it) if it.victims.is_empty() => Err(InfeasibleReason::PreemptionNotHelpful),
            found => found,
        };
        match found {
            Ok(found) => {
                let plan = world.plan(Some(host), preemptor.pods, found, &mut cascades);
                trace.record(|| GangStep::Scored { score: plan.score });
                match plan.score {
                    Score { violations: 0, .. } => whole = whole.saturating_add(1),
                    _ => broken = broken.saturating_add(1),
                }
                see(NodeSearchResult::Plan(plan));
            }
            Err(why) => {
                trace.record(|| GangStep::Infeasible {
                    reason: why.clone(),
                });
                see(NodeSearchResult::Infeasible(host, why));
            }
        }
        let is_enough = |it: super::decide::NodeSample| {
            // Beyond what is enough, either kind is counted no further.
            let seen = whole.min(it.count).saturating_add(broken.min(it.count));
            whole > 0 && seen >= it.count
        };
        if ask.sample.is_some_and(is_enough) {
            return;
        }
    }
}

/// A node that the pod never goes to is no domain, unless it was asked for by name.
fn check_node(
    world: &GangCluster,
    ask: &PreemptionRequest<'_>,
    search: &DomainSearch<'_>,
    host: HostId,
) -> Result<(), InfeasibleReason> {
    let is_ours = world.options.compatibility == SchedulerCompatibility::Lockkeeper;
    let node = world
        .cluster
        .host(host)
        .filter(|_| is_ours || ask.hosts.is_none());
    let Some((node, shape)) = node.zip(search.preemptor.shapes.first()) else {
        return Ok(());
    };
    let shape = world.cluster.shape_of(*shape);
    let refused = shape.rejection_by(node, world.cluster.symbols());
    if let Some(refusal) = refused {
        return Err(InfeasibleReason::Rejected(refusal));
    }
    let cut = PriorityCutoff {
        state: world,
        max_priority: None,
    };
    let mut overlay = Overlay::new(&cut);
    search.baseline.apply_to(&mut overlay, &cut, &[host]);
    if !is_ours && overlay.fits(host, shape) {
        return Err(InfeasibleReason::PreemptionNotHelpful);
    }
    Ok(())
}
