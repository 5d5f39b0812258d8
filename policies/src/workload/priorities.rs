//! The two priorities of a workload (KEP-5710, Workload priorities).

use crate::cluster_view::{ClusterView, Lookup, PriorityClassFacts};
use crate::priority_admission::system_class;
use lockkeeper_api::Workload;

/// The PriorityClass of this name; the two system classes always exist.
pub(crate) fn class(cluster: &dyn ClusterView, name: &str) -> Lookup<PriorityClassFacts> {
    match system_class(name) {
        None => cluster.priority_class(name),
        Some(facts) => Lookup::Found(facts),
    }
}

/// The priorities of a workload whose preemption priority class is set and known.
pub(super) struct SeparatePriorities<'a> {
    /// The scheduling class; `None` is priority 0, as there was no global default on creation.
    pub(super) scheduling_class: Option<&'a str>,
    /// The scheduling priority.
    pub(super) scheduling: i32,
    /// The preemption class.
    pub(super) preemption_class: &'a str,
    /// The preemption priority.
    pub(super) preemption: i32,
}

impl SeparatePriorities<'_> {
    /// The text of the scheduling priority in messages.
    pub(super) fn scheduling_priority_text(&self) -> String {
        match self.scheduling_class {
            Some(name) => format!("{} of priorityClassName {name:?}", self.scheduling),
            None => "0 of a workload without priorityClassName".to_owned(),
        }
    }
}

/// The priorities of a workload; `None` when it has one priority for both, or a class that is not
/// known.
pub(super) fn separate_priorities<'a>(
    workload: &'a Workload,
    cluster: &dyn ClusterView,
) -> Option<SeparatePriorities<'a>> {
    let spec = &workload.spec;
    let scheduling_class = spec.priority_class_name.as_deref();
    let preemption_class = spec.preemption_priority_class_name.as_deref()?;
    if scheduling_class == Some(preemption_class) {
        return None;
    }
    // Both classes are looked up before either is reported missing, so that a live lookup fetches both.
    let scheduling = scheduling_class.map(|name| class(cluster, name).found());
    let preemption = class(cluster, preemption_class).found()?;
    Some(SeparatePriorities {
        scheduling_class,
        scheduling: match scheduling {
            None => 0,
            Some(found) => found?.value,
        },
        preemption_class,
        preemption: preemption.value,
    })
}
