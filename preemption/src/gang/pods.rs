//! Single pods as preemptors: every node is a domain.

use super::domain::Domain;
use super::plan::{Ask, Outcome, Plan, Why};
use super::room::{Cut, Ground};
use super::score::{Cascades, Score};
use super::search::{Preemptor, Search};
use super::spec::Compatibility;
use super::trace::{Step, Trace};
use super::world::World;
use crate::names::HostId;
use crate::placement::Overlay;

/// What all domains came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DryRun {
    /// Those that will do, in the order in which they were looked at: those first that break no budget.
    pub candidates: Vec<Plan>,
    /// Nodes that will not, or `None` for the cluster, and why.
    pub infeasible: Vec<(Option<HostId>, Why)>,
}

impl World {
    /// Who would have to go in each domain so that a pod or a gang fits there, whether or not it fits already and may
    /// preempt.
    ///
    /// Source: kube-scheduler v1.37, `DryRunPreemption`.
    #[must_use]
    pub fn dry_run(&self, ask: &Ask<'_>, trace: &mut Trace) -> DryRun {
        let mut ground = Ground::default();
        super::nominated::reserve(self, ask, &mut ground);
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
        each(self, ask, &ground, preemptor, trace, |seen| match seen {
            Seen::Plan(plan) if plan.violations > 0 => broken.push(plan),
            Seen::Plan(plan) => run.candidates.push(plan),
            Seen::Infeasible(host, why) => run.infeasible.push((Some(host), why)),
        });
        let count = ask.sample.map_or(usize::MAX, |it| it.count);
        run.candidates.truncate(count);
        broken.truncate(count);
        run.candidates.append(&mut broken);
        run
    }
}

/// The node that costs the least; of equal ones the first.
pub(super) fn best(
    world: &World,
    ask: &Ask<'_>,
    ground: &Ground,
    preemptor: Preemptor<'_>,
    trace: &mut Trace,
) -> Outcome {
    let mut best: Option<Plan> = None;
    let mut domains = Vec::new();
    each(world, ask, ground, preemptor, trace, |seen| match seen {
        Seen::Plan(plan) => {
            if best.as_ref().is_none_or(|it| plan.score < it.score) {
                best = Some(plan);
            }
        }
        Seen::Infeasible(host, why) => domains.push((Some(host), why)),
    });
    match best {
        Some(plan) => {
            trace.note(|| Step::Chosen { host: plan.host });
            Outcome::Preempt(plan)
        }
        None => Outcome::Infeasible { domains },
    }
}

enum Seen {
    Plan(Plan),
    Infeasible(HostId, Why),
}

/// Looks at each node, until there are enough.
fn each(
    world: &World,
    ask: &Ask<'_>,
    ground: &Ground,
    preemptor: Preemptor<'_>,
    trace: &mut Trace,
    mut see: impl FnMut(Seen),
) {
    let mut hosts: Vec<HostId> = match ask.hosts {
        Some(hosts) => hosts.to_vec(),
        None => world.cluster.hosts().collect(),
    };
    let offset = ask.sample.map_or(0, |it| it.offset);
    let offset = offset.checked_rem(hosts.len()).unwrap_or_default();
    hosts.rotate_left(offset);
    let mut cascades = Cascades::new(world, ground);
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for host in hosts {
        trace.note(|| Step::Domain { host: Some(host) });
        let domain = Domain::Host(host);
        let search = Search {
            world,
            ground,
            preemptor,
            domain: &domain,
            strategy: world.options.strategy,
        };
        let found = match is_worth_it(world, ask, &search, host) {
            Ok(()) => search.run(trace),
            Err(why) => Err(why),
        };
        let found = match found {
            Ok(it) if it.victims.is_empty() => Err(Why::NobodyInTheWay),
            found => found,
        };
        match found {
            Ok(found) => {
                let plan = world.plan(Some(host), preemptor.pods, found, &mut cascades);
                trace.note(|| Step::Scored { score: plan.score });
                match plan.score {
                    Score { violations: 0, .. } => whole = whole.saturating_add(1),
                    _ => broken = broken.saturating_add(1),
                }
                see(Seen::Plan(plan));
            }
            Err(why) => {
                trace.note(|| Step::Infeasible { why: why.clone() });
                see(Seen::Infeasible(host, why));
            }
        }
        let is_enough = |it: super::plan::Sample| {
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
fn is_worth_it(world: &World, ask: &Ask<'_>, search: &Search<'_>, host: HostId) -> Result<(), Why> {
    let is_ours = world.options.compatibility == Compatibility::Lockkeeper;
    let node = world
        .cluster
        .host(host)
        .filter(|_| is_ours || ask.hosts.is_none());
    let Some((node, shape)) = node.zip(search.preemptor.shapes.first()) else {
        return Ok(());
    };
    let shape = world.cluster.shape_of(*shape);
    let refused = shape.refused_by(node, world.cluster.words());
    if let Some(refusal) = refused {
        return Err(Why::Refused(refusal));
    }
    let cut = Cut { world, most: None };
    let mut overlay = Overlay::new(&cut);
    search.ground.put_on(&mut overlay, &cut, &[host]);
    if !is_ours && overlay.has_room(host, shape) {
        return Err(Why::NobodyInTheWay);
    }
    Ok(())
}
