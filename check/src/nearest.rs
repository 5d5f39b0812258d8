//! The nearest known name, for suggestions.

/// The most similar known name, upper and lower case aside, if its similarity is at least `similarity_min`, from 0 to 1.
/// The cost is that of a comparison with each name.
pub(crate) fn nearest<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
    similarity_min: f64,
) -> Option<&'a str> {
    let name = name.to_lowercase();
    let scored = known.map(|it| (strsim::jaro_winkler(&name, &it.to_lowercase()), it));
    let (score, near) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= similarity_min).then_some(near)
}
