//! Corrects typos and writes defaults, and leaves the rest of a text as it is.

mod defaults;
mod edits;
mod fixer;
#[cfg(test)]
mod tests;
mod typos;
mod yaml_insert;

pub use fixer::{FixedFile, Fixer};
