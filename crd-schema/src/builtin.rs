//! Built-in kinds, decoded, defaulted and validated as the API server does.

#[allow(
    dead_code,
    unused_imports,
    reason = "the answer path for built-in kinds is not there yet"
)]
mod validation;
