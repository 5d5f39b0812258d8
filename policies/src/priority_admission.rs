//! Which priority Kubernetes gives (admission plugin Priority).

use crate::cluster_view::{ClusterView, Lookup, PreemptionPolicy, PriorityClassFacts};
use crate::finding::quoted;

/// The classes that every cluster has, with their values (Kubernetes `pkg/apis/scheduling`).
pub(crate) const SYSTEM_CLASSES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// How many classes a message names.
const NAMES_MAX: usize = 8;

/// One of the classes that every cluster has.
pub(crate) fn system_class(name: &str) -> Option<PriorityClassFacts> {
    let found = SYSTEM_CLASSES.iter().find(|(system, _)| *system == name);
    found.map(|(_, value)| PriorityClassFacts {
        value: *value,
        global_default: false,
        preemption_policy: Some(PreemptionPolicy::PreemptLowerPriority),
    })
}

/// What is given to whoever names a class, or none.
pub(crate) struct ResolvedPriority {
    /// The class; `None` when none is named and there is no default.
    pub(crate) class: Option<String>,
    /// The priority.
    pub(crate) value: i32,
    /// Whether it may preempt, when the class says so.
    pub(crate) policy: Option<PreemptionPolicy>,
}

impl ResolvedPriority {
    fn from_class(class: &str, facts: PriorityClassFacts) -> Self {
        Self {
            class: Some(class.to_owned()),
            value: facts.value,
            policy: facts.preemption_policy,
        }
    }

    /// How a message says where it comes from.
    pub(crate) fn source(&self) -> String {
        match &self.class {
            Some(class) => format!("of PriorityClass {}", quoted(class)),
            None => "without a PriorityClass".to_owned(),
        }
    }
}

/// The priority that comes of a class name; of an empty one the global default.
pub(crate) fn resolve(world: &dyn ClusterView, class: &str) -> Lookup<ResolvedPriority> {
    if class.is_empty() {
        return match world.global_default() {
            Lookup::Found((name, facts)) => {
                Lookup::Found(ResolvedPriority::from_class(&name, facts))
            }
            Lookup::Absent => Lookup::Found(ResolvedPriority {
                class: None,
                value: 0,
                policy: Some(PreemptionPolicy::PreemptLowerPriority),
            }),
            Lookup::Unknown => Lookup::Unknown,
        };
    }
    match (world.priority_class(class), system_class(class)) {
        (Lookup::Found(facts), _) | (_, Some(facts)) => {
            Lookup::Found(ResolvedPriority::from_class(class, facts))
        }
        (Lookup::Absent, None) => Lookup::Absent,
        (Lookup::Unknown, None) => Lookup::Unknown,
    }
}

/// What a message says to whoever names a class that does not exist.
pub(crate) fn known_classes(world: &dyn ClusterView) -> String {
    let names = world.priority_class_names(NAMES_MAX);
    let list = names
        .iter()
        .map(|name| quoted(name))
        .collect::<Vec<_>>()
        .join(", ");
    match names.len() {
        0 => "no PriorityClass has been made yet; create this one first".to_owned(),
        NAMES_MAX => format!("create this PriorityClass first, or name another, such as {list}"),
        _ => format!("create this PriorityClass first, or name one of {list}"),
    }
}
