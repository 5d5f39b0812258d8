//! Services.

mod cluster_ips;
mod fields;
mod spec;

pub(super) use fields::{validate, validate_addresses};
