//! Lists of resource amounts, like Kubernetes' `ResourceList`.

use crate::amount::Amount;
use crate::ids::ResourceId;

/// Amounts by resource, sorted by resource, each at most once.
///
/// In a limit a resource that is missing is not limited (Kubernetes `quota/v1`, `LessThanOrEqual`); in a sum
/// it is zero. A sum costs the length of both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceList(Vec<(ResourceId, Amount)>);

impl ResourceList {
    /// An empty list.
    pub const NONE: Self = Self(Vec::new());

    /// A list from pairs in any order; amounts of the same resource are added.
    #[must_use]
    pub fn from_pairs(pairs: impl IntoIterator<Item = (ResourceId, Amount)>) -> Self {
        let mut sums = Self::default();
        for (resource, amount) in pairs {
            sums.change(resource, |it| it.plus(amount));
        }
        sums
    }

    /// The amount of a resource; `None` if it is missing.
    #[must_use]
    pub fn get(&self, resource: ResourceId) -> Option<Amount> {
        let at = self.0.binary_search_by_key(&resource, |(it, _)| *it).ok()?;
        self.0.get(at).map(|(_, amount)| *amount)
    }

    /// All amounts, by resource.
    #[must_use = "it does nothing by itself"]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ResourceId, Amount)> {
        self.0.iter().copied()
    }

    /// Whether the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the amounts of another list.
    pub fn add(&mut self, other: &Self) {
        for (resource, amount) in other.iter() {
            self.change(resource, |it| it.plus(amount));
        }
    }

    /// Subtracts the amounts of another list. A resource that is missing here becomes negative.
    pub fn subtract(&mut self, other: &Self) {
        for (resource, amount) in other.iter() {
            self.change(resource, |it| it.minus(amount));
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// The difference.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        difference.subtract(other);
        difference
    }

    /// Only the resources that `names` contains.
    #[must_use]
    pub fn masked(&self, names: &Self) -> Self {
        let amounts = self.iter().filter(|(it, _)| names.get(*it).is_some());
        Self(amounts.collect())
    }

    /// Each amount capped by the limit.
    #[must_use]
    pub fn capped_by(&self, limit: &Self) -> Self {
        let least = |it, amount: Amount| limit.get(it).map_or(amount, |most| amount.min(most));
        Self(
            self.iter()
                .map(|(it, amount)| (it, least(it, amount)))
                .collect(),
        )
    }

    /// Each negative amount replaced by zero.
    #[must_use]
    pub fn clamped_at_zero(&self) -> Self {
        Self(
            self.iter()
                .map(|(it, amount)| (it, amount.or_zero()))
                .collect(),
        )
    }

    /// The resources that exceed the limit, sorted.
    #[must_use]
    pub fn exceeding(&self, limit: &Self) -> Vec<ResourceId> {
        let over = self
            .iter()
            .filter(|(it, amount)| is_over(limit, *it, *amount));
        over.map(|(it, _)| it).collect()
    }

    /// Whether no resource exceeds the limit.
    #[must_use]
    pub fn fits(&self, limit: &Self) -> bool {
        !self.iter().any(|(it, amount)| is_over(limit, it, amount))
    }

    fn change(&mut self, resource: ResourceId, change: impl FnOnce(Amount) -> Amount) {
        match self.0.binary_search_by_key(&resource, |(it, _)| *it) {
            Ok(at) => {
                if let Some((_, amount)) = self.0.get_mut(at) {
                    *amount = change(*amount);
                }
            }
            // In a sum, a missing resource is zero.
            Err(at) => self.0.insert(at, (resource, change(Amount::ZERO))),
        }
    }
}

fn is_over(limit: &ResourceList, resource: ResourceId, amount: Amount) -> bool {
    // `quota/v1` `LessThanOrEqual` compares only names that both lists have.
    limit.get(resource).is_some_and(|most| amount > most)
}

#[cfg(test)]
mod tests {
    use super::{Amount, ResourceId, ResourceList};

    fn list(pairs: &[(u32, i64)]) -> ResourceList {
        let pairs = pairs.iter();
        ResourceList::from_pairs(pairs.map(|(it, amount)| (ResourceId(*it), Amount::new(*amount))))
    }

    #[test]
    fn fits_resource_missing_in_limit_is_unlimited() {
        for (amounts, limit, beyond) in [
            (&[(1, 5), (2, 5)][..], &[(1, 5), (2, 4)][..], &[2][..]),
            (&[(1, 5), (2, 5)], &[(1, 5)], &[]),
            (&[(1, 5)], &[(2, 0)], &[]),
            (&[(1, 5)], &[(1, i64::MAX)], &[]),
            (&[(1, 1), (2, 1)], &[(1, 0), (2, 0)], &[1, 2]),
            (&[(1, -1)], &[(1, 0)], &[]),
        ] {
            let (amounts, limit) = (list(amounts), list(limit));
            let beyond: Vec<_> = beyond.iter().map(|it| ResourceId(*it)).collect();
            assert_eq!(amounts.exceeding(&limit), beyond);
            assert_eq!(amounts.fits(&limit), beyond.is_empty());
        }
    }

    #[test]
    fn plus_and_minus_cover_resources_of_both() {
        let (a, b) = (list(&[(2, 1), (1, 2), (2, 4)]), list(&[(3, 1), (2, 1)]));
        assert_eq!(a.plus(&b), list(&[(1, 2), (2, 6), (3, 1)]));
        assert_eq!(a.minus(&b), list(&[(1, 2), (2, 4), (3, -1)]));
        assert_eq!(
            a.minus(&b).clamped_at_zero(),
            list(&[(1, 2), (2, 4), (3, 0)])
        );
        assert_eq!(a.masked(&b), list(&[(2, 5)]));
        assert_eq!(a.capped_by(&b), list(&[(1, 2), (2, 1)]));
    }
}
