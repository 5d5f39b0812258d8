//! Small worlds: made from bytes, put into a `State`, and read back by name.

pub mod choices;
pub mod cluster_model;
pub mod events;
pub mod generate;
pub mod live;
pub mod live_queries;
pub mod named_decisions;
