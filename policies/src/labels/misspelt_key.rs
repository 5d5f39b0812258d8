#![doc = include_str!("misspelt_key.md")]

use super::{Labelled, known};
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;

/// The most keys of one object that are compared with the known ones: who sends thousands of them gets an answer
/// in time.
const COMPARED_MAX: usize = 256;

/// Names that are like each other at least so much are near.
const LIKE: f64 = 0.92;

/// A name of fewer letters may differ by one of them only, and one of up to [`SHORT_MAX`] by none.
const LONG_MIN: usize = 8;

/// See [`LONG_MIN`]: such short names are near too many others.
const SHORT_MAX: usize = 4;

/// Only a name of so many letters is looked for in the other domains of Koordinator.
const TELLING_MIN: usize = 8;

const KOORDINATOR: &str = "koordinator.sh";

/// The rule, with the action that it has for the kind.
pub(crate) const fn rule<T: Labelled>(action: Action) -> Rule<T> {
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

fn check<T: Labelled>(object: &T, out: &mut Findings) {
    let mut compared: usize = 0;
    object.each_metadata(&mut |holder, maps| {
        for (field, map, _) in maps.both() {
            for (key, value) in map.into_iter().flatten() {
                if !is_like_theirs(key) || known::place(key).is_some() {
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

/// Whether a key might be one of a project's: most keys are told from them by this alone.
fn is_like_theirs(key: &str) -> bool {
    let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
    let mut domains = known::DOMAINS.iter();
    domain.ends_with(KOORDINATOR) || domains.any(|known| is_near_domain(domain, known))
}

/// Whether a domain is that of a known key, or differs from it by a slip.
fn is_near_domain(domain: &str, known: &str) -> bool {
    domain == known
        || (domain.len().abs_diff(known.len()) <= 2 && strsim::osa_distance(domain, known) <= 2)
}

/// The known key that is very near to one that is not known.
fn nearest(key: &str) -> Option<&'static str> {
    let Some((domain, name)) = key.split_once('/') else {
        let mut bare = known::all().map(|(known, _)| *known);
        return bare.find(|known| !known.contains('/') && is_near_domain(key, known));
    };
    let scored = known::all().filter_map(|(known, _)| {
        let (known_domain, known_name) = known.split_once('/')?;
        let score = likeness(name, known_name)?;
        let is_same = domain == known_domain;
        let is_exact = name == known_name;
        let is_near = is_same
            || is_near_domain(domain, known_domain)
            || (is_exact && name.len() >= TELLING_MIN && both_of_koordinator(domain, known_domain));
        // The domain that was written is likelier than another one.
        is_near.then_some((is_same, score, *known))
    });
    let best = scored.max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    best.map(|(_, _, known)| known)
}

fn both_of_koordinator(domain: &str, other: &str) -> bool {
    domain.ends_with(KOORDINATOR) && other.ends_with(KOORDINATOR)
}

/// How much two names are like each other, if they are near: as they stand, or by letters alone.
pub(super) fn likeness(name: &str, known: &str) -> Option<f64> {
    if name == known {
        return Some(2.0);
    }
    let (a, b) = (letters(name), letters(known));
    let score = strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    let allowed = match b.len() {
        0..=SHORT_MAX => 0,
        it if it < LONG_MIN => 1,
        _ => 2,
    };
    let is_slip = a.len().abs_diff(b.len()) <= allowed && strsim::osa_distance(&a, &b) <= allowed;
    // A slip is nearer than whatever begins alike.
    match (is_slip, b.len() > SHORT_MAX && score >= LIKE) {
        (true, _) => Some(1.0 + score / 2.0),
        (false, true) => Some(score),
        (false, false) => None,
    }
}

/// A name without what parts its words, in lower case.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(|it| !matches!(it, '-' | '_' | '.'));
    letters.flat_map(char::to_lowercase).collect()
}
