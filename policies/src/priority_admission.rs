//! The priority that Kubernetes assigns (admission plugin Priority).

use crate::cluster_view::{ClusterView, Lookup, PreemptionPolicy, PriorityClassFacts};
use crate::finding::quoted;

/// The built-in PriorityClasses with their values (Kubernetes `pkg/apis/scheduling`).
pub(crate) const SYSTEM_CLASSES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// The most classes that a message names.
const NAMES_MAX: usize = 8;

/// The facts of a built-in PriorityClass; `None` for other names.
pub(crate) fn system_class(name: &str) -> Option<PriorityClassFacts> {
    let found = SYSTEM_CLASSES.iter().find(|(system, _)| *system == name);
    found.map(|(_, value)| PriorityClassFacts {
        value: *value,
        global_default: false,
        preemption_policy: Some(PreemptionPolicy::PreemptLowerPriority),
    })
}

/// The priority of a pod or workload with a given class name, possibly empty.
pub(crate) struct ResolvedPriority {
    /// The class; `None` without a class name and a global default.
    pub(crate) class: Option<String>,
    /// The priority.
    pub(crate) value: i32,
    /// The preemption policy of the class; `None` if unset.
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

    /// The source of the priority for messages.
    pub(crate) fn source(&self) -> String {
        match &self.class {
            Some(class) => format!("of PriorityClass {}", quoted(class)),
            None => "without a PriorityClass".to_owned(),
        }
    }
}

/// The priority for a class name; for an empty name that of the global default, or 0.
pub(crate) fn resolve(cluster: &dyn ClusterView, class: &str) -> Lookup<ResolvedPriority> {
    if class.is_empty() {
        return match cluster.global_default() {
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
    match (cluster.priority_class(class), system_class(class)) {
        // System classes always exist, also if the view has no PriorityClass at all.
        (Lookup::Found(facts), _) | (_, Some(facts)) => {
            Lookup::Found(ResolvedPriority::from_class(class, facts))
        }
        (Lookup::Absent, None) => Lookup::Absent,
        (Lookup::Unknown, None) => Lookup::Unknown,
    }
}

/// The remedy in a message about a class that does not exist.
pub(crate) fn known_classes(cluster: &dyn ClusterView) -> String {
    let names = cluster.priority_class_names(NAMES_MAX);
    let list = names
        .iter()
        .map(|name| quoted(name))
        .collect::<Vec<_>>()
        .join(", ");
    match names.len() {
        0 => "no PriorityClass exists yet; create this one first".to_owned(),
        NAMES_MAX => format!("create this PriorityClass first, or name another, such as {list}"),
        _ => format!("create this PriorityClass first, or name one of {list}"),
    }
}
