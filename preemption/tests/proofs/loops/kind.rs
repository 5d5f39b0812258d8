//! The kind of a loop: loops of one kind have the same cause.

use super::run::Loop;
use lockkeeper_preemption::Algorithm;
use std::collections::BTreeSet;

/// The kinds of a loop, as text. **Robbed**: no preemptor of the loop is ever admitted, because other workloads take
/// the quota first. **Answered**: every preemptor is admitted, and is a victim later. **Chain**: some preemptors are
/// admitted, and the victims of the others make room for the first ones again.
pub fn loop_kinds(found: &Loop) -> BTreeSet<String> {
    let algorithm = match &found.cluster_model.options.algorithm {
        Algorithm::Classical => "classical",
        Algorithm::FairSharing(_) => "fair",
    };
    let preempted = || found.cycles.iter().flat_map(|it| &it.preempted);
    let comes_in = |name: &String| found.cycles.iter().any(|it| it.admitted.contains(name));
    let admitted = preempted().filter(|(it, _)| comes_in(it)).count();
    if admitted == preempted().count() {
        return BTreeSet::from([format!("{algorithm}: answered")]);
    }
    if admitted > 0 {
        return BTreeSet::from([format!("{algorithm}: chain")]);
    }
    let victims = preempted().flat_map(|(_, victims)| victims);
    let back = victims.filter(|(name, _)| comes_in(name));
    back.map(|(_, reason)| format!("{algorithm}: robbed, {}", reason.as_str()))
        .collect()
}
