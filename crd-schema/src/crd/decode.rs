//! Decodes a request body as the API server does.

mod body;
mod decoded;
mod json;
mod yaml;

pub(super) use body::decode;
pub use decoded::ContentType;
pub(super) use decoded::DEPTH_MAX;
