//! Numbers in place of names: what is compared millions of times is no text.

use std::collections::BTreeMap;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl $name {
            #[allow(dead_code, reason = "not every kind of number is used as an index")]
            pub(crate) fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            #[allow(dead_code, reason = "not every kind of number is made from an index")]
            pub(crate) fn of(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    };
}

id!(
    /// A resource flavor.
    FlavorId
);
id!(
    /// A resource, such as cpu.
    ResourceId
);
id!(
    /// A ClusterQueue or a cohort: a node of the quota tree.
    NodeId
);
id!(
    /// A workload, pending or running.
    WorkloadId
);
id!(
    /// What one node has of one flavor and resource.
    CellId
);

id!(
    /// A node of the cluster, where pods run. ([`NodeId`] is one of the quota tree.)
    HostId
);
id!(
    /// A pod.
    PodId
);
id!(
    /// What many pods have in common: requests, and where they may go.
    ShapeId
);
id!(
    /// A word: a key or a value of a label or a taint, a namespace.
    SymbolId
);

id!(
    /// A pod group: a replica that is scheduled as one, or a composite of such.
    GroupId
);
id!(
    /// What is preempted as one: a pod, or all pods of a group.
    UnitId
);
id!(
    /// A disruption budget.
    BudgetId
);

impl ResourceId {
    /// The resource `pods`: where a queue covers it, each pod asks for one.
    pub const PODS: Self = Self(0);
}

/// A resource of a flavor: what quota is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlavorResource {
    /// The flavor.
    pub flavor: FlavorId,
    /// The resource.
    pub resource: ResourceId,
}

/// Names of one kind and their numbers. A number is never given again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    ids: BTreeMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl Interner {
    /// The number of a name, a new one if it was not known.
    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        if let Some(number) = self.ids.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.ids.insert(Arc::clone(&name), number);
        self.names.push(name);
        number
    }

    /// How many names are known.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The number of a name that is known.
    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        self.names.get(index).map_or("", |name| &**name)
    }
}
