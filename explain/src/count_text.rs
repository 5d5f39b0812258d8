//! Counts with their nouns and verbs.

/// A count of other workloads with its verb.
pub(crate) fn count_are(number: usize) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb}", count(number, "other workload"))
}

/// A count with its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
