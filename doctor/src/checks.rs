//! The checks by subject.

pub(crate) mod availability;
pub(crate) mod capacity;
pub(crate) mod certificates;
pub(crate) mod definitions;
pub(crate) mod deletion;
pub(crate) mod scope;
pub(crate) mod served;
