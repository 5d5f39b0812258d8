//! Usage of admitted workloads, summed by flavor, resource and preemption priority.

use crate::amount::Amount;
use crate::ids::FlavorResource;

/// The sums by priority of one flavor and resource, sorted.
type ByPriority = Vec<(i32, Amount)>;

/// The sums of a queue or a tree. Sorted vectors, since there are few flavors, resources and priorities, and each search
/// reads several sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageSums {
    by_resource: Vec<(FlavorResource, ByPriority)>,
}

impl UsageSums {
    /// Changes the sum of one priority. Sums of zero are dropped, so that a sum over priorities costs only those in use.
    pub(crate) fn change(
        &mut self,
        of: FlavorResource,
        priority: i32,
        change: impl FnOnce(Amount) -> Amount,
    ) {
        let found = self.by_resource.binary_search_by_key(&of, |(of, _)| *of);
        let at = found.unwrap_or_else(|at| {
            self.by_resource.insert(at, (of, Vec::new()));
            at
        });
        let Some((_, sums)) = self.by_resource.get_mut(at) else {
            return;
        };
        match sums.binary_search_by_key(&priority, |(it, _)| *it) {
            Ok(at) => {
                let sum = sums.get(at).map_or(Amount::ZERO, |(_, sum)| *sum);
                let sum = change(sum);
                if sum == Amount::ZERO {
                    sums.remove(at);
                } else if let Some((_, slot)) = sums.get_mut(at) {
                    *slot = sum;
                }
            }
            Err(at) => {
                let sum = change(Amount::ZERO);
                if sum != Amount::ZERO {
                    sums.insert(at, (priority, sum));
                }
            }
        }
    }

    /// Adds all sums of another queue.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for (of, sums) in &other.by_resource {
            for (priority, amount) in sums {
                self.change(*of, *priority, |sum| sum.plus(*amount));
            }
        }
    }

    /// Returns the sum over the priorities below `below`; `None` includes every priority.
    pub(crate) fn sum(&self, of: FlavorResource, below: Option<i32>) -> Amount {
        let found = self
            .by_resource
            .binary_search_by_key(&of.key(), |(of, _)| of.key());
        let sums = found.ok().and_then(|at| self.by_resource.get(at));
        let sums = sums.map_or(&[][..], |(_, sums)| sums.as_slice());
        let is_below = |priority: i32| below.is_none_or(|below| priority < below);
        let sums = sums.iter().take_while(|(priority, _)| is_below(*priority));
        sums.fold(Amount::ZERO, |sum, (_, amount)| sum.plus(*amount))
    }
}
