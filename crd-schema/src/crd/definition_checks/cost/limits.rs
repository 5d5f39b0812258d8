//! The limits of estimated costs.

use super::declared::DeclaredSizes;
use crate::crd::definition_checks::collector::{Collector, is_set, text};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The largest cost of one expression.
const EXPRESSION_COST_MAX: u64 = 10_000_000;

/// The largest cost of all expressions of a schema.
const SCHEMA_COST_MAX: u64 = 100_000_000;

/// The share of the largest cost from which an expression is named.
const NAMED_SHARE: u64 = 100;

/// The most expressions that are named.
const NAMED_MAX: usize = 4;

/// The costs of the expressions of a schema.
#[derive(Debug, Default)]
pub(in super::super) struct Costs {
    pub(in super::super) sizes: DeclaredSizes,
    /// Whether only the sum is checked, because a stored definition has the same schema.
    is_unchanged: bool,
    sum: u64,
    /// The fields of the most expensive expressions with their costs, the largest first.
    most_expensive: Vec<(u64, FieldPath)>,
}

impl Costs {
    pub(in super::super) fn new(is_unchanged: bool) -> Self {
        Self {
            is_unchanged,
            ..Self::default()
        }
    }

    /// Adds the cost of an expression: of one value times the number of values.
    pub(in super::super) fn add(
        &mut self,
        field: &FieldPath,
        name: &str,
        cost: u64,
        out: &mut Collector,
    ) {
        if cost > EXPRESSION_COST_MAX && !self.is_unchanged {
            let name = format!("estimated {name} cost");
            out.forbidden(field.clone(), exceeds(&name, cost, EXPRESSION_COST_MAX));
        }
        self.sum = self.sum.saturating_add(cost);
        if cost.saturating_mul(NAMED_SHARE) < SCHEMA_COST_MAX {
            return;
        }
        self.most_expensive.push((cost, field.clone()));
        self.most_expensive
            .sort_by_key(|it| std::cmp::Reverse(it.0));
        self.most_expensive.truncate(NAMED_MAX);
    }

    /// Reports a sum that is too large.
    pub(in super::super) fn check_sum(self, root: &FieldPath, out: &mut Collector) {
        if self.sum <= SCHEMA_COST_MAX {
            return;
        }
        for (_, field) in self.most_expensive {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            out.forbidden(field, detail);
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        out.forbidden(root.clone(), exceeds(name, self.sum, SCHEMA_COST_MAX));
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the factor is printed with one digit"
)]
fn exceeds(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// The largest number of values of the schemas directly below a schema. `None` if there is no limit.
pub(in super::super) fn cardinality_below(schema: &Value, cardinality: Option<u64>) -> Option<u64> {
    let bound = |key: &str| {
        let bound = schema.get(key).and_then(Value::as_i64);
        bound.map(|it| u64::try_from(it).unwrap_or(0))
    };
    let count = match text(schema, "type") {
        "object" if is_set(schema, "additionalProperties") => bound("maxProperties")?,
        "array" => bound("maxItems")?,
        _ => 1,
    };
    Some(cardinality?.saturating_mul(count))
}
