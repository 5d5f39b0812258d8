//! Gangs pod by pod: delayed preemption where the workload is not seen as a whole.

use super::plan::{Ask, Ineligible, Outcome, Plan, Why};
use super::pods;
use super::room::Ground;
use super::score::{Cascades, Score};
use super::search::Search;
use super::spec::Kind;
use super::trace::{Step, Trace};
use super::world::World;
use crate::names::{HostId, PodId, UnitId};
use std::collections::BTreeSet;

impl World {
    /// Decides on a gang pod by pod, each on its own node: first where it fits when the victims of those before it are
    /// gone and they have their places, else where its own victims cost the least. Only if enough pods have a place is
    /// anybody preempted; otherwise all victims are dropped.
    ///
    /// Source: KEP-5710, Delayed preemption, the legacy case: the victims that were already chosen are handed on by
    /// node.
    ///
    /// Costs the nodes, and the units on them that may go, for every pod.
    #[must_use]
    pub fn decide_pod_by_pod(&self, ask: &Ask<'_>, trace: &mut Trace) -> Outcome {
        let mut ground = Ground::default();
        super::nominated::reserve(self, ask, &mut ground);
        let shapes = self.shapes(ask.pods);
        let preemptor = self.preemptor(ask, &shapes);
        let is_never = self.policy(ask) == crate::placement::PodPreemption::Never;
        let mut chosen = Chosen::default();
        for (pod, shape) in ask.pods.iter().zip(&shapes) {
            trace.note(|| Step::Pod { pod: *pod });
            let own = Ask {
                pods: std::slice::from_ref(pod),
                group: None,
                given: None,
                ..*ask
            };
            let mut one = preemptor;
            one.pods = own.pods;
            one.shapes = std::slice::from_ref(shape);
            one.count_min = 1;
            one.given = None;
            let search = Search {
                world: self,
                ground: &ground,
                preemptor: one,
                domain: &self.domain(ask),
                strategy: self.options.strategy,
            };
            let mut host = search.place(None, &[]).first().copied().flatten();
            if host.is_none() && !is_never {
                trace.note(|| Step::NoRoom);
                match pods::best(self, &own, &ground, one, trace) {
                    Outcome::Preempt(plan) => {
                        host = plan.host;
                        chosen.add(plan);
                    }
                    Outcome::Infeasible { domains } => chosen.infeasible = domains,
                    _ => {}
                }
            }
            for victim in &chosen.victims {
                ground.choose(self, *victim);
            }
            if let Some(host) = host {
                ground.take(host, *shape);
            }
            chosen.placement.push((*pod, host));
        }
        self.whole(ask, preemptor.count_min, chosen, is_never)
    }

    /// All or nothing.
    fn whole(&self, ask: &Ask<'_>, count_min: usize, chosen: Chosen, is_never: bool) -> Outcome {
        let placement = chosen.placement;
        let placed = placement.iter().filter(|(_, host)| host.is_some()).count();
        if placed < count_min {
            if is_never {
                return Outcome::Refused(Ineligible::Never);
            }
            let first = placement.iter().find(|(_, host)| host.is_none());
            let why = Why::NoPlacement {
                pod: first.map(|(pod, _)| *pod),
                placed,
                count_min,
            };
            let mut domains = vec![(None, why)];
            domains.extend(chosen.infeasible);
            return Outcome::Infeasible { domains };
        }
        if chosen.victims.is_empty() {
            return Outcome::Fits { placement };
        }
        let ranked: BTreeSet<_> = chosen
            .victims
            .iter()
            .filter_map(|it| Some(self.unit(*it)?.rank(*it)))
            .collect();
        let victims: Vec<UnitId> = ranked.into_iter().map(|it| it.unit).collect();
        let units = victims.iter().filter_map(|it| self.unit(*it));
        let of_groups = units.filter(|it| it.kind() > Kind::Pod).count();
        let mut before = Ground::default();
        super::nominated::reserve(self, ask, &mut before);
        let cascades = Cascades::new(self, &before).count(&victims);
        Outcome::Preempt(Plan {
            host: None,
            placement,
            score: Score::of(self, &victims, chosen.violations, cascades),
            violations: chosen.violations,
            group_disruptions: u32::try_from(of_groups).unwrap_or(u32::MAX),
            most: chosen.most.unwrap_or(i32::MIN),
            victims,
        })
    }
}

/// What the pods before have come to.
#[derive(Default)]
struct Chosen {
    placement: Vec<(PodId, Option<HostId>)>,
    victims: BTreeSet<UnitId>,
    violations: u32,
    most: Option<i32>,
    /// Why the last pod without a place has none.
    infeasible: Vec<(Option<HostId>, Why)>,
}

impl Chosen {
    fn add(&mut self, plan: Plan) {
        self.victims.extend(plan.victims);
        self.violations = self.violations.saturating_add(plan.violations);
        self.most = self.most.max(Some(plan.most));
    }
}
