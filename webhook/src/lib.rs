//! The admission webhook: AdmissionReview in, AdmissionReview out.
//!
//! A request passes [`listener`] (TLS, HTTP), [`http`] (limits, decoding of the review), the route of its kind and the
//! rules of `lockkeeper-policies`. Every response carries the uid of its request. Rules that need other
//! objects read [`stores`]; an object that the stores miss is looked up once at the API server.
//!
//! `/convert` converts objects of the kinds with registered converters. [`metrics`] are served on a separate
//! port.
//!
//! No rule is defined here.

pub mod app_state;
pub mod caller_tokens;
pub mod http;
pub mod listener;
pub mod live_lookup;
pub mod load_shedding;
pub mod metrics;
pub mod metrics_server;
pub mod readiness;
pub mod stores;

mod admission_response;
mod admission_review;
mod conversion_review;
mod deadline;
mod duplicate_keys;
mod embedded_objects;
mod json_cursor;
mod json_text;
mod metric_labels;
mod object_identity;
mod peer_shares;
mod pod_template_cache;
pub mod preview;
mod request_observer;
mod request_view;
mod review_context;
mod route;
mod rule_hits;
mod status;
mod trace;
mod word_search;
