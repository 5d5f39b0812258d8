//! Ids in place of names, since comparisons of integers are cheap.

use std::collections::BTreeMap;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Returns the id as an index: ids of a kind are small numbers. That of a removed object may be used
            /// again.
            #[must_use]
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            #[allow(dead_code, reason = "not every kind of id is created from an index")]
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
    /// A workload, pending or admitted.
    WorkloadId
);
id!(
    /// The quota and usage of one node for one flavor and resource.
    CellId
);

id!(
    /// A Kubernetes Node. ([`NodeId`] is a node of the quota tree.)
    HostId
);
id!(
    /// A pod.
    PodId
);
id!(
    /// A pod shape: requests and placement constraints that many pods share.
    ShapeId
);
id!(
    /// An interned string: a key or value of a label or taint, or a namespace.
    SymbolId
);

id!(
    /// A pod group: a replica that is scheduled as a whole, or a composite of replicas.
    GroupId
);
id!(
    /// A disruption unit: a pod, or all pods of a group.
    UnitId
);
id!(
    /// A disruption budget.
    BudgetId
);

impl ResourceId {
    /// The resource `pods`: where a queue covers it, each pod requests one.
    pub const PODS: Self = Self(0);

    /// A resource without a name in the state: no queue covers it, so a workload that requests it does not fit.
    pub const UNKNOWN: Self = Self(u32::MAX);

    /// The first id of host ports. They are no indexes: a node has one of each, and few are in use.
    const HOST_PORTS: u32 = 1 << 31;
    /// The number of ids of host ports: a port of 16 bits for each protocol.
    const HOST_PORTS_LEN: u32 = 3 << 16;

    /// A port of a node, of which the node has one.
    #[must_use]
    pub const fn host_port(protocol: PortProtocol, port: u16) -> Self {
        Self(Self::HOST_PORTS | (protocol as u32) << 16 | port as u32)
    }

    /// Whether this is a port of a node.
    #[must_use]
    pub const fn is_host_port(self) -> bool {
        self.0 & Self::HOST_PORTS != 0 && (self.0 ^ Self::HOST_PORTS) < Self::HOST_PORTS_LEN
    }

    /// Like [`Self::is_host_port`], for ids of placement, which has no [`Self::UNKNOWN`]: one comparison.
    pub(crate) const fn has_port_bit(self) -> bool {
        self.0 >= Self::HOST_PORTS
    }

    /// The protocol and the number of a port.
    #[must_use]
    pub const fn as_host_port(self) -> Option<(PortProtocol, u16)> {
        if !self.is_host_port() {
            return None;
        }
        let protocol = match (self.0 ^ Self::HOST_PORTS) >> 16 {
            0 => PortProtocol::Tcp,
            1 => PortProtocol::Udp,
            _ => PortProtocol::Sctp,
        };
        Some((protocol, (self.0 & 0xffff) as u16))
    }
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortProtocol {
    /// TCP.
    Tcp = 0,
    /// UDP.
    Udp = 1,
    /// SCTP.
    Sctp = 2,
}

/// A resource of a flavor: the unit that quota is declared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlavorResource {
    /// The flavor.
    pub flavor: FlavorId,
    /// The resource.
    pub resource: ResourceId,
}

impl FlavorResource {
    /// Returns one number with the same order: a search compares it faster than two.
    pub(crate) const fn key(self) -> u64 {
        (self.flavor.0 as u64) << 32 | self.resource.0 as u64
    }
}

/// Names of one kind and their ids. An id is never reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    ids: BTreeMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl Interner {
    /// Returns the id of a name; an unknown name gets a new one.
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

    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Looks up the id of a name.
    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        self.names.get(index).map_or("", |name| &**name)
    }
}
