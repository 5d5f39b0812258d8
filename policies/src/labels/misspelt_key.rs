#![doc = include_str!("misspelt_key.md")]

use super::{HasLabelledMetadata, known_keys};
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;

/// The most keys of one object that are compared with the known keys, so that an object with thousands of keys does not
/// delay the review.
const COMPARED_MAX: usize = 256;

/// The least similarity of a misspelt name.
const SIMILARITY_MIN: f64 = 0.92;

/// A shorter name may differ by one letter only, and a name of up to [`SHORT_NAME_MAX`] letters by none.
const LONG_NAME_MIN: usize = 8;

/// See [`LONG_NAME_MIN`]: such short names are similar to too many others.
const SHORT_NAME_MAX: usize = 4;

/// The least length of a name that is searched in Koordinator's other domains.
const DISTINCTIVE_LENGTH_MIN: usize = 8;

const KOORDINATOR: &str = "koordinator.sh";

/// The rule with the default action for the kind.
pub(crate) const fn rule<T: HasLabelledMetadata>(action: Action) -> Rule<T> {
    Rule {
        id: "LA001",
        name: "misspelt-key",
        since: "0.1.0",
        action,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("misspelt_key.md"),
        check: Check::Object(check),
    }
}

fn check<T: HasLabelledMetadata>(object: &T, out: &mut Findings) {
    let mut compared: usize = 0;
    object.each_metadata(&mut |holder, maps| {
        for (field, map, _) in maps.with_counterparts() {
            for (key, value) in map.into_iter().flatten() {
                // The cheap test comes first: most keys belong to other projects.
                if !is_similar_to_known_key(key) || known_keys::location(key).is_some() {
                    continue;
                }
                compared = compared.saturating_add(1);
                if compared > COMPARED_MAX {
                    return;
                }
                if let Some(meant) = nearest(key) {
                    let field = holder.path().field(field).key(key.as_str());
                    let detail = format!("is under no known key; did you mean {meant}?");
                    out.invalid(field, value, detail);
                }
            }
        }
    });
}

/// Whether a key may belong to a known project. This cheap test excludes most keys.
fn is_similar_to_known_key(key: &str) -> bool {
    let (domain, _) = known_keys::split_key(key);
    let mut domains = known_keys::DOMAINS.iter();
    domain.ends_with(KOORDINATOR) || domains.any(|known| is_near_domain(domain, known))
}

/// The most wrong letters in a domain.
const TYPOS_MAX: usize = 2;

/// Whether a domain is that of a known key, or a misspelling of it.
fn is_near_domain(domain: &str, known: &str) -> bool {
    // The edit distance is quadratic, so lengths and letters exclude most domains before.
    domain == known
        || (domain.len().abs_diff(known.len()) <= TYPOS_MAX
            && odd_letters(domain.bytes(), known.bytes())
                .iter()
                .all(|odd| *odd <= TYPOS_MAX)
            && strsim::osa_distance(domain, known) <= TYPOS_MAX)
}

/// The number of letters that only the first name has, and the number that only the second has. A typing error adds at
/// most one to each, so this excludes most names at far less cost than the similarity.
fn odd_letters(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> [usize; 2] {
    // Letters that share a bit can only lower the result.
    let mark = |seen: u64, letter: u8| seen | 1 << (letter & 63);
    let (one, other) = (one.fold(0, mark), other.fold(0, mark));
    [one & !other, other & !one].map(|odd| usize::try_from(odd.count_ones()).unwrap_or(usize::MAX))
}

/// The known key that is most similar to an unknown one.
fn nearest(key: &str) -> Option<&'static str> {
    let (domain, name) = known_keys::split_key(key);
    let of_domains = known_keys::by_domain().iter().filter_map(|(known, keys)| {
        let is_near = is_near_domain(domain, known);
        (is_near || are_both_koordinator(domain, known)).then_some((*known, keys, is_near))
    });
    let scored = of_domains.flat_map(|(known_domain, keys, is_near)| {
        keys.iter().filter_map(move |(known_name, (known, _))| {
            let is_scored =
                is_near || (name == *known_name && name.len() >= DISTINCTIVE_LENGTH_MIN);
            // The given domain is more likely than another one.
            let score = is_scored.then(|| similarity(name, known_name))?;
            Some((domain == known_domain, score?, *known))
        })
    });
    let best = scored.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    best.map(|(_, _, known)| known)
}

fn are_both_koordinator(domain: &str, other: &str) -> bool {
    domain.ends_with(KOORDINATOR) && other.ends_with(KOORDINATOR)
}

/// The similarity of two names, if it is high enough: as given, or by their letters only.
pub(super) fn similarity(name: &str, known: &str) -> Option<f64> {
    if name == known {
        // Above every other score: an equal name in a misspelt domain is the best match.
        return Some(2.0);
    }
    may_be_similar(name, known).then(|| measure_similarity(name, known))?
}

/// The similarity without the test of letters first.
fn measure_similarity(name: &str, known: &str) -> Option<f64> {
    let (a, b) = (letters(name), letters(known));
    let score = strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    let allowed = match b.len() {
        0..=SHORT_NAME_MAX => 0,
        it if it < LONG_NAME_MIN => 1,
        _ => 2,
    };
    let is_slip = a.len().abs_diff(b.len()) <= allowed && strsim::osa_distance(&a, &b) <= allowed;
    // A typing error counts more than a common prefix.
    match (is_slip, b.len() > SHORT_NAME_MAX && score >= SIMILARITY_MIN) {
        (true, _) => Some(1.0 + score / 2.0),
        (false, true) => Some(score),
        (false, false) => None,
    }
}

/// Whether two names have enough common letters to be similar by either measure.
///
/// A Jaro-Winkler similarity of 0.92 requires a Jaro similarity of 0.867, because a common prefix reduces the distance
/// to 1 by at most four tenths; and that requires `m/a + m/b` of 1.6 for `m` common letters of `a` and `b`.
fn may_be_similar(name: &str, known: &str) -> bool {
    let [one, other] = [name, known].map(|it| it.bytes().map(|it| it.to_ascii_lowercase()));
    let is_letter = |it: &u8| !matches!(it, b'-' | b'_' | b'.');
    let odd = odd_letters(
        one.clone().filter(is_letter),
        other.clone().filter(is_letter),
    );
    if odd.iter().all(|it| *it <= TYPOS_MAX) {
        return true;
    }
    let (a, b) = (name.len(), known.len());
    let [odd_a, odd_b] = odd_letters(one, other);
    let common = a.saturating_sub(odd_a).min(b.saturating_sub(odd_b));
    let both = a.saturating_add(b);
    common.saturating_mul(both).saturating_mul(5) >= a.saturating_mul(b).saturating_mul(8)
}

/// A name in lower case without separators.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(|it| !matches!(it, '-' | '_' | '.'));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{may_be_similar, measure_similarity, odd_letters};
    use proptest::prelude::*;

    proptest! {
        /// The test of letters never excludes a near name.
        #[test]
        fn typos_change_few_letters(one in "[a-c.]{0,6}", other in "[a-c.]{0,6}") {
            let slips = strsim::osa_distance(&one, &other);
            prop_assert!(odd_letters(one.bytes(), other.bytes()).iter().all(|odd| *odd <= slips));
            prop_assert_eq!(odd_letters(one.bytes(), one.bytes()), [0, 0]);
        }

        /// The test of common letters never excludes a similar name.
        #[test]
        fn similar_names_pass_the_prefilter(one in "[a-dA-D-]{1,12}", other in "[a-d-]{1,12}") {
            if measure_similarity(&one, &other).is_some() {
                prop_assert!(may_be_similar(&one, &other));
            }
        }
    }
}
