//! Variables and the remaining cost of an evaluation.

use super::value::{Failure, Outcome};

/// The cost limit of all rules of one object (`RuntimeCELCostBudget` of `k8s.io/apiserver/pkg/apis/cel`).
const COST_MAX: u64 = 10_000_000;

/// The cost limit of one evaluation (`PerCallLimit`).
const EVALUATION_COST_MAX: u64 = 1_000_000;

/// The most parts of expressions that are evaluated for one object. Constants have no cost, but take time.
const STEPS_MAX: u64 = 50_000_000;

/// The remaining costs.
#[derive(Debug)]
pub(in super::super) struct Budget {
    /// Of all evaluations.
    remaining: u64,
    /// The cost of the current evaluation.
    used: u64,
    steps: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            remaining: COST_MAX,
            used: 0,
            steps: STEPS_MAX,
        }
    }
}

impl Budget {
    /// A budget with another cost limit.
    pub(in super::super) fn with_limit(remaining: u64) -> Self {
        Self {
            remaining,
            ..Self::default()
        }
    }

    /// Begins an evaluation.
    pub(super) fn begin(&mut self) {
        self.used = 0;
    }

    /// Subtracts the cost of an evaluation that ended.
    ///
    /// # Errors
    ///
    /// If the remaining cost of the object is smaller.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        let remaining = self.remaining.checked_sub(self.used);
        self.remaining = remaining.ok_or(Failure::BudgetExceeded)?;
        Ok(())
    }

    /// Charges a cost.
    ///
    /// # Errors
    ///
    /// If the evaluation costs too much.
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        self.used = self.used.saturating_add(cost);
        if self.used > EVALUATION_COST_MAX {
            return Err(Failure::CostExceeded);
        }
        Ok(())
    }

    /// The cost of the last evaluation.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Takes a charge back.
    pub(super) fn refund(&mut self, cost: u64) {
        self.used = self.used.saturating_sub(cost);
    }

    /// Counts parts of expressions.
    ///
    /// # Errors
    ///
    /// If too many parts were evaluated.
    pub(super) fn step(&mut self, count: u64) -> Result<(), Failure> {
        let steps = self.steps.checked_sub(count);
        self.steps = steps.ok_or(Failure::CostExceeded)?;
        Ok(())
    }
}

/// The variables of an evaluation, the innermost last.
#[derive(Debug)]
pub(in super::super) struct Scope<'a> {
    variables: Vec<(String, Outcome<'a>)>,
}

impl<'a> Scope<'a> {
    pub(in super::super) fn new() -> Self {
        Self {
            variables: Vec::new(),
        }
    }

    /// Adds a variable.
    pub(in super::super) fn set(&mut self, name: &str, value: Outcome<'a>) {
        self.variables.push((name.to_owned(), value));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Outcome<'a>> {
        self.variables
            .iter()
            .rev()
            .find(|it| it.0 == name)
            .map(|it| &it.1)
    }

    /// Removes the last variables.
    pub(super) fn truncate(&mut self, count: usize) {
        self.variables.truncate(count);
    }

    pub(super) fn count(&self) -> usize {
        self.variables.len()
    }

    /// Replaces the value of a variable.
    pub(super) fn replace(&mut self, position: usize, value: Outcome<'a>) {
        if let Some(variable) = self.variables.get_mut(position) {
            variable.1 = value;
        }
    }
}
