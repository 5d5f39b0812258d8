//! Small clusters: generated from bytes, added to a `State`, and queried by name.

pub mod choices;
pub mod cluster_model;
pub mod events;
pub mod generate;
pub mod live;
pub mod live_queries;
pub mod named_decisions;
