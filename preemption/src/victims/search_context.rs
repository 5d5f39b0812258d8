//! The input of a search that does not depend on the preemptor's demand.

use super::preemptor::Preemptor;
use crate::admitted::{AdmittedIndex, AdmittedLookup, AdmittedWorkload};
use crate::ids::WorkloadId;
use crate::policy::Algorithm;
use crate::spec::KueueBugs;
use crate::victim::Protection;
use crate::victim_protection::VictimProtection;
use std::collections::BTreeSet;

/// What a search reads.
#[derive(Clone, Copy)]
pub(crate) struct SearchContext<'a> {
    pub(crate) index: &'a AdmittedIndex,
    pub(crate) admitted: &'a dyn AdmittedLookup,
    pub(crate) algorithm: &'a Algorithm,
    pub(crate) kueue_bugs: KueueBugs,
    /// Workloads that count as gone: victims of earlier entries of the cycle.
    pub(crate) removed: &'a BTreeSet<WorkloadId>,
    /// Says whom the preemptor spares.
    pub(crate) protection: VictimProtection<'a>,
}

impl SearchContext<'_> {
    /// Why the preemptor spares a candidate that its policy lets it take, if it does.
    pub(super) fn protection(
        &self,
        preemptor: &Preemptor<'_>,
        id: WorkloadId,
        running: &AdmittedWorkload,
    ) -> Option<Protection> {
        let is_own_queue = running.queue == preemptor.queue;
        let protection = &self.protection;
        protection.protection(preemptor.priority, is_own_queue, id, running)
    }
}
