//! The values of fields that are tried.

use crate::rng::Rng;

/// A choice for each field: the index of its value.
pub type Candidate = Vec<usize>;

/// The number of values of each field. The first value of each field is the one that the configuration has today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchSpace {
    sizes: Vec<usize>,
}

impl SearchSpace {
    /// A space with so many values for each field; a field has one at least.
    #[must_use]
    pub fn new(sizes: &[usize]) -> Self {
        Self {
            sizes: sizes.iter().map(|it| (*it).max(1)).collect(),
        }
    }

    /// The number of candidates; `u64::MAX` if there are more.
    #[must_use]
    pub fn count(&self) -> u64 {
        let sizes = self.sizes.iter();
        let sizes = sizes.map(|it| u64::try_from(*it).unwrap_or(u64::MAX));
        sizes.fold(1, u64::saturating_mul)
    }

    /// The candidate without any change.
    #[must_use]
    pub fn unchanged(&self) -> Candidate {
        vec![0; self.sizes.len()]
    }

    /// The candidate of a number below [`Self::count`]; 0 is the one without any change.
    pub(super) fn candidate(&self, number: u64) -> Candidate {
        let mut rest = number;
        let digits = self.sizes.iter().map(|size| {
            let size = u64::try_from(*size).unwrap_or(u64::MAX);
            let digit = rest.checked_rem(size).unwrap_or_default();
            rest = rest.checked_div(size).unwrap_or_default();
            usize::try_from(digit).unwrap_or_default()
        });
        digits.collect()
    }

    /// A candidate at random.
    pub(super) fn draw(&self, rng: &mut Rng) -> Candidate {
        self.sizes.iter().map(|size| rng.below(*size)).collect()
    }

    /// The candidates that differ in one field.
    pub(super) fn neighbours(&self, of: &Candidate) -> impl Iterator<Item = Candidate> {
        let fields = self.sizes.iter().enumerate();
        let pairs = fields.flat_map(|(field, size)| (0..*size).map(move |value| (field, value)));
        pairs.filter_map(move |(field, value)| {
            let mut candidate = of.clone();
            let slot = candidate.get_mut(field)?;
            (std::mem::replace(slot, value) != value).then_some(candidate)
        })
    }
}
