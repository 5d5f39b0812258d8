//! User rules: pages with CEL as their check.
//!
//! A page begins with the rule as YAML; the rest is documentation, fixtures and test at once, as in the pages of
//! built-in rules. Pages are parsed and compiled once. The cost of expressions is limited ([`COST_MAX`]), so no rule
//! delays a review.

mod evaluate;
mod fixture;
mod front_matter;
mod limits;
mod page;
mod path;
pub(crate) mod rule_set;

pub use evaluate::review;
pub use fixture::{FixtureResult, Outcome, test_fixtures};
pub use limits::{KINDS_MAX, PAGE_MAX_BYTES, RULES_MAX, VALIDATIONS_MAX};
pub use lockkeeper_crd_schema::cel::{COST_MAX, COST_TOTAL_MAX, EXPRESSION_MAX_BYTES};
pub(crate) use page::ANY;
pub use page::{Kind, KindName, PageError, Problem, UserRule, is_user_id};
pub use rule_set::{Source, UserRules, UserRulesError};

#[cfg(test)]
mod tests;
