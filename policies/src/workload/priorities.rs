//! The two priorities of a workload (KEP-5710, Workload priorities).

use crate::world::{Lookup, PriorityClassFacts, World};
use lockkeeper_api::Workload;

/// The classes that every cluster has, with their values (Kubernetes `pkg/apis/scheduling`).
const SYSTEM_CLASSES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// The PriorityClass of this name; the two system classes always exist.
pub(super) fn class(world: &dyn World, name: &str) -> Lookup<PriorityClassFacts> {
    match SYSTEM_CLASSES.iter().find(|(system, _)| *system == name) {
        None => world.priority_class(name),
        Some((_, value)) => Lookup::Found(PriorityClassFacts {
            value: *value,
            global_default: false,
        }),
    }
}

/// The priorities of a workload whose preemption priority class is named and known.
pub(super) struct Separate<'a> {
    /// The scheduling class; `None` is priority 0, as there was no default when it was made.
    pub(super) scheduling_class: Option<&'a str>,
    /// The scheduling priority.
    pub(super) scheduling: i32,
    /// The preemption class.
    pub(super) preemption_class: &'a str,
    /// The preemption priority.
    pub(super) preemption: i32,
}

impl Separate<'_> {
    /// How a message names the scheduling priority.
    pub(super) fn scheduling_words(&self) -> String {
        match self.scheduling_class {
            Some(name) => format!("{} of priorityClassName {name:?}", self.scheduling),
            None => "0 of a workload without priorityClassName".to_owned(),
        }
    }
}

/// The priorities of a workload; `None` when it has one priority for both, or a class that is not
/// known.
pub(super) fn separate<'a>(workload: &'a Workload, world: &dyn World) -> Option<Separate<'a>> {
    let spec = &workload.spec;
    let scheduling_class = spec.priority_class_name.as_deref();
    let preemption_class = spec.preemption_priority_class_name.as_deref()?;
    if scheduling_class == Some(preemption_class) {
        return None;
    }
    // Both are asked for before either is missed, so that whoever fetches them fetches both.
    let scheduling = scheduling_class.map(|name| class(world, name).found());
    let preemption = class(world, preemption_class).found()?;
    Some(Separate {
        scheduling_class,
        scheduling: match scheduling {
            None => 0,
            Some(found) => found?.value,
        },
        preemption_class,
        preemption: preemption.value,
    })
}
