//! Which kinds are listed: decisions wait for complete lists.

use crate::job_adapters::watched_kind;
use crate::key::Kind;
use std::collections::BTreeSet;

/// The lists of the watched kinds.
#[derive(Debug)]
pub(super) struct KindLists {
    /// Kinds with a complete initial list; the watch task holds partial lists.
    listed: BTreeSet<Kind>,
    /// Kinds without a complete list since this process became the leader.
    outdated: BTreeSet<Kind>,
    /// The kinds that a cluster may lack, and that this one has.
    optional: Vec<Kind>,
    /// The declared kinds that the controller may not list.
    forbidden: BTreeSet<Kind>,
}

impl KindLists {
    pub(super) const fn new(optional: Vec<Kind>) -> Self {
        Self {
            listed: BTreeSet::new(),
            outdated: BTreeSet::new(),
            optional,
            forbidden: BTreeSet::new(),
        }
    }

    pub(super) fn is_listed(&self, kind: Kind) -> bool {
        let kind = match kind {
            Kind::Job(kind) => Kind::Job(watched_kind(kind)),
            kind => kind,
        };
        self.listed.contains(&kind)
    }

    /// Decisions do not wait for the list of a kind until it is complete: the controller may not list it.
    pub(super) fn set_forbidden(&mut self, kind: Kind) {
        self.forbidden.insert(kind);
        self.outdated.remove(&kind);
    }

    /// Whether the controller may not list a declared kind.
    pub(super) fn is_forbidden(&self, kind: Kind) -> bool {
        self.forbidden.contains(&kind)
    }

    pub(super) fn set_listed(&mut self, kind: Kind) {
        self.forbidden.remove(&kind);
        self.listed.insert(kind);
        self.outdated.remove(&kind);
    }

    /// Every kind has to be listed again: its watch may be behind the writes of another process.
    pub(super) fn set_outdated(&mut self) {
        let optional = self.optional.iter().copied();
        let all = Kind::FIXED.into_iter().chain(optional).chain(Kind::NODES);
        self.outdated = all.collect();
    }

    /// Whether the lists that placement reads are complete. Queues without placement do not wait for them.
    pub(super) fn has_node_lists(&self) -> bool {
        let mut kinds = Kind::NODES.iter();
        kinds.all(|it| self.is_listed(*it) && !self.outdated.contains(it))
    }

    /// Whether the state has all writes of former leaders.
    pub(super) fn is_up_to_date(&self) -> bool {
        let mut outdated = self.outdated.iter();
        outdated.all(|it| Kind::NODES.contains(it))
    }

    /// Whether the initial lists of all kinds are complete.
    pub(super) fn is_synced(&self) -> bool {
        let optional = self.optional.iter().copied();
        let mut all = Kind::FIXED.into_iter().chain(optional);
        all.all(|kind| self.is_listed(kind) || self.forbidden.contains(&kind))
    }

    pub(super) fn add_optional(&mut self, kind: Kind) {
        if !self.optional.contains(&kind) {
            self.optional.push(kind);
        }
    }

    /// The cluster does not have this kind.
    pub(super) fn remove_optional(&mut self, kind: Kind) {
        self.optional.retain(|it| *it != kind);
        self.outdated.remove(&kind);
    }

    /// Whether the cluster has a kind that it may lack.
    pub(super) fn has_optional(&self, kind: Kind) -> bool {
        self.optional.contains(&kind)
    }
}
