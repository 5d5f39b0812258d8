//! Compares two schemas, node by node.

mod accepts;
mod children;
mod comparison;
mod cursor;
mod types;

pub use comparison::compare;
