//! Estimates the largest cost of CEL rules, as `cel.EstimateCost` of cel-go 0.29 with the cost library of
//! `k8s.io/apiserver` 1.37, and applies the limits of `k8s.io/apiextensions-apiserver`.

mod argument;
mod declared;
mod estimate;
mod extensions;
mod functions;
mod library;
mod limits;
mod path;
mod size;

pub(super) use declared::{Declared, DeclaredSizes};
pub(super) use estimate::estimate;
pub(super) use limits::{Costs, cardinality_below};
