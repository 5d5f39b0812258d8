//! Decodes a request body as the API server does.

mod body;
mod decoded;
mod json;
mod yaml;

pub(crate) use body::{decode, decode_merging};
pub use decoded::ContentType;
pub(crate) use decoded::DEPTH_MAX;
