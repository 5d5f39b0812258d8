//! The last nomination of a workload, which a later cycle reuses if it is still valid.

use crate::assignment::Assignment;
use crate::ids::ResourceId;
use crate::victim::Victim;
use std::sync::Arc;

/// The nomination of a workload that started at the first flavor.
#[derive(Clone, Debug)]
pub(crate) struct KnownNomination {
    /// The version of all trees at that time.
    pub(crate) version: u64,
    pub(crate) assignment: Arc<Assignment>,
    pub(crate) victims: Vec<Victim>,
    pub(crate) tried_flavors: Vec<(usize, ResourceId, usize)>,
}

impl KnownNomination {
    /// Creates the nomination of a workload at a version of the trees.
    pub(crate) fn new(version: u64, assignment: &Arc<Assignment>, victims: &[Victim]) -> Self {
        Self {
            version,
            assignment: Arc::clone(assignment),
            victims: victims.to_vec(),
            tried_flavors: assignment.last_tried_flavors(),
        }
    }

    /// Makes it valid at a later version, if it is a nomination with this assignment.
    pub(crate) fn renew(&mut self, version: u64, assignment: &Arc<Assignment>) -> bool {
        let is_same = Arc::ptr_eq(&self.assignment, assignment);
        if is_same {
            self.version = version;
        }
        is_same
    }
}
