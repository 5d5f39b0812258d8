//! Limits of user rules.

/// The largest page, in bytes: 64 KiB.
pub const PAGE_MAX_BYTES: usize = 64 * 1024;

/// The most user rules.
pub const RULES_MAX: usize = 256;

/// The most kinds that a rule names.
pub const KINDS_MAX: usize = 64;

/// The most validations of a rule, and the most conditions.
pub const VALIDATIONS_MAX: usize = 64;
