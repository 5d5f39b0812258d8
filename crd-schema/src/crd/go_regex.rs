//! Regular expressions with the semantics of Go's `regexp`, which `pattern` and the CEL function `matches` use.
//!
//! [`compile`] and [`is_valid`] parse the syntax of Go and write it in the syntax of the crate `regex`.

mod class;
mod cursor;
mod escape;
mod flags;
mod names;
mod parser;
mod stack;
#[cfg(test)]
mod tests;

use regex::{Regex, RegexBuilder};

/// The size limit of a compiled pattern, in bytes.
const COMPILED_MAX_BYTES: usize = 32 * 1024 * 1024;

/// The length limit of a pattern, in bytes.
const PATTERN_MAX_BYTES: usize = 64 * 1024;

/// Compiles a pattern of Go. `None` if Go rejects it, or it exceeds the limits.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    if pattern.len() > PATTERN_MAX_BYTES {
        return None;
    }
    let translated = parser::translate(pattern)?;
    let mut builder = RegexBuilder::new(&translated);
    builder.size_limit(COMPILED_MAX_BYTES).build().ok()
}

/// Whether Go accepts a pattern, also one beyond the limits of [`compile`].
pub(crate) fn is_valid(pattern: &str) -> bool {
    parser::translate(pattern).is_some()
}
