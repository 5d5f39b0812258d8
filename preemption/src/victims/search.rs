//! The search for the victims of one preemptor.

use super::preemptor::Preemptor;
use super::search_context::SearchContext;
use super::{classical, fair};
use crate::policy::Algorithm;
use crate::quota::View;
use crate::trace::{Step, Trace};
use crate::victim::Victim;

/// Returns the victims; none if no permitted set of victims makes room. Leaves the view unchanged.
pub(crate) fn search(
    view: &mut View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> Vec<Victim> {
    if !preemptor.may_preempt {
        trace.record(|| Step::MayNotPreempt);
        return Vec::new();
    }
    if let Some(until_s) = preemptor.delayed_until_s {
        trace.record(|| Step::PreemptionDelayed { until_s });
        context.protection.wake_at(until_s);
        return Vec::new();
    }
    let mark = view.mark();
    let victims = match context.algorithm {
        Algorithm::Classical => classical::search(view, context, preemptor, trace),
        Algorithm::FairSharing(strategies) => {
            fair::search(view, context, preemptor, strategies, trace)
        }
    };
    view.roll_back(mark);
    victims
}
