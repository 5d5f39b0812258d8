//! The TLS server: an admission review in, an admission review out.
//!
//! A request goes through [`listener`] (TLS, HTTP), [`http`] (limits, envelope), a route (its kind's
//! types) and the rules of `lockkeeper-policies`; the answer carries the uid, whatever happened. Rules
//! that need other objects read [`stores`], and ask the API server once when those miss something.
//!
//! Objects of kinds with several versions are converted as well; which kinds those are is for who starts the server to say.
//!
//! What happened is counted in [`metrics`], which have a port of their own.
//!
//! There is no rule text here, and nothing here decides what is allowed.

pub mod app_state;
pub mod http;
pub mod listener;
pub mod live_lookup;
pub mod load_shedding;
pub mod metrics;
pub mod readiness;
pub mod stores;

mod admission_response;
mod admission_review;
mod conversion_review;
mod deadline;
mod duplicate_keys;
mod request_view;
mod review_context;
mod route;
mod trace;
