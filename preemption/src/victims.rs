//! Searches for the victims that a preemptor needs.
//!
//! Both algorithms map a [`Preemptor`] to its victims, on a [`View`](crate::quota::View) of the quota tree
//! that they leave unchanged:
//!
//! - [`classical`]: by priority, and from queues that borrow (KEP-83, KEP-1337, hierarchical cohorts);
//! - [`fair`]: by dominant resource shares (KEP-1714).
//!
//! At the end both remove every victim that is not needed from the list (fill-back), so each remaining victim is
//! necessary. The result is all or nothing: if the candidates together do not free enough quota, there
//! are no victims.

mod candidate_group;
mod candidate_scope;
mod classical;
mod common_ancestor;
mod fair;
mod fair_candidates;
mod feasibility;
mod fit;
mod merge;
mod preemptor;
mod search;
mod search_context;

pub(crate) use preemptor::{Demand, Preemptor};
pub(crate) use search::search;
pub(crate) use search_context::SearchContext;
