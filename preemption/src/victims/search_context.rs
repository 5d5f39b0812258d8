//! The input of a search that does not depend on the preemptor's demand.

use super::preemptor::Preemptor;
use crate::admitted::{AdmittedIndex, AdmittedLookup, AdmittedWorkload};
use crate::ids::WorkloadId;
use crate::policy::Algorithm;
use crate::spec::KueueBugs;
use crate::victim::Protection;
use crate::victim_protection::VictimProtection;
use std::collections::BTreeSet;

/// The state that a search reads.
#[derive(Clone, Copy)]
pub(crate) struct SearchContext<'a> {
    pub(crate) index: &'a AdmittedIndex,
    pub(crate) admitted: &'a dyn AdmittedLookup,
    pub(crate) algorithm: &'a Algorithm,
    pub(crate) kueue_bugs: KueueBugs,
    /// Workloads that count as removed: victims of earlier entries of the cycle.
    pub(crate) removed: &'a BTreeSet<WorkloadId>,
    /// The candidates that are protected from the preemptor.
    pub(crate) protection: VictimProtection<'a>,
}

impl SearchContext<'_> {
    /// Returns the reason if a candidate that the policy permits is protected.
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
