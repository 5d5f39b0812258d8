//! CEL: single expressions with a cost limit, and a fast path for simple ones.

mod cost;
mod expression;
pub(crate) mod fast_path;
mod nesting_limit;
pub(crate) mod reserved_words;
mod values;

pub use expression::{
    COST_MAX, COST_TOTAL_MAX, EXPRESSION_MAX_BYTES, EvaluationError, EvaluationInput, Expression,
    ParseError,
};
