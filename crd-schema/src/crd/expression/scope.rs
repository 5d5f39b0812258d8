//! Variables and the remaining cost of an evaluation.

use super::value::{Failure, Outcome};

/// The cost limit of all rules of one object, in evaluated nodes.
const COST_MAX: u64 = 10_000_000;

/// The remaining cost.
#[derive(Debug)]
pub(in super::super) struct Budget {
    remaining: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            remaining: COST_MAX,
        }
    }
}

impl Budget {
    /// Charges a cost.
    pub(super) fn charge(&mut self, cost: usize) -> Result<(), Failure> {
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        match self.remaining.checked_sub(cost) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(())
            }
            None => Err(Failure::CostExceeded),
        }
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
