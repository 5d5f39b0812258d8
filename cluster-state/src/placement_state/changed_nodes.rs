//! The nodes whose room has changed since the last plans for it.

use lockkeeper_preemption::HostId;
use std::collections::BTreeSet;

/// The changed nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedNodes {
    hosts: BTreeSet<HostId>,
    /// Whether any node may have changed.
    is_any: bool,
}

impl ChangedNodes {
    pub(super) fn add(&mut self, host: HostId) {
        if !self.is_any {
            self.hosts.insert(host);
        }
    }

    pub(super) fn add_all(&mut self) {
        self.is_any = true;
        self.hosts.clear();
    }

    /// Whether one of these nodes has changed.
    pub(super) fn has(&self, mut hosts: impl Iterator<Item = HostId>) -> bool {
        self.is_any || hosts.any(|it| self.hosts.contains(&it))
    }

    /// Forgets all other nodes.
    pub(super) fn retain(&mut self, is_kept: impl Fn(HostId) -> bool) {
        self.hosts.retain(|it| is_kept(*it));
    }
}
