//! Compares the bounds of values.

use super::Effect;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use std::cmp::Ordering;

/// A bound that differs between the schemas.
pub(super) struct BoundChange {
    pub(super) effect: Effect,
    pub(super) description: String,
}

/// All changed bounds.
pub(super) fn bound_changes(old: &JSONSchemaProps, new: &JSONSchemaProps) -> Vec<BoundChange> {
    let counts = [
        ("minLength", Side::Lower, old.min_length, new.min_length),
        ("maxLength", Side::Upper, old.max_length, new.max_length),
        ("minItems", Side::Lower, old.min_items, new.min_items),
        ("maxItems", Side::Upper, old.max_items, new.max_items),
        (
            "minProperties",
            Side::Lower,
            old.min_properties,
            new.min_properties,
        ),
        (
            "maxProperties",
            Side::Upper,
            old.max_properties,
            new.max_properties,
        ),
    ];
    let counts = counts.into_iter().filter_map(|(name, side, old, new)| {
        // A minimum of 0 or less rejects nothing.
        let of = |it: Option<i64>| it.filter(|it| !(matches!(side, Side::Lower) && *it <= 0));
        let of = |limit| {
            of(limit).map(|value| Bound {
                value,
                is_excluded: false,
            })
        };
        compare_bound(name, side, of(old), of(new))
    });
    let number = |value: Option<f64>, excluded: Option<bool>| {
        value.map(|value| Bound {
            value,
            is_excluded: excluded == Some(true),
        })
    };
    let least = (
        number(old.minimum, old.exclusive_minimum),
        number(new.minimum, new.exclusive_minimum),
    );
    let most = (
        number(old.maximum, old.exclusive_maximum),
        number(new.maximum, new.exclusive_maximum),
    );
    let numbers = [
        compare_bound("minimum", Side::Lower, least.0, least.1),
        compare_bound("maximum", Side::Upper, most.0, most.1),
        compare_multiple_of(old.multiple_of, new.multiple_of),
    ];
    counts.chain(numbers.into_iter().flatten()).collect()
}

#[derive(Clone, Copy)]
enum Side {
    Lower,
    Upper,
}

#[derive(Clone, Copy)]
struct Bound<T> {
    value: T,
    is_excluded: bool,
}

impl<T: PartialOrd> Bound<T> {
    /// Compares the strictness of two bounds; `None` if a value is NaN.
    fn strictness(&self, other: &Self, side: Side) -> Option<Ordering> {
        let by_value = self.value.partial_cmp(&other.value)?;
        let by_value = match side {
            Side::Lower => by_value,
            Side::Upper => by_value.reverse(),
        };
        // At the same value, the exclusive bound is the stricter one.
        Some(by_value.then(self.is_excluded.cmp(&other.is_excluded)))
    }
}

fn compare_bound<T: Copy + PartialOrd + ToString>(
    name: &str,
    side: Side,
    old: Option<Bound<T>>,
    new: Option<Bound<T>>,
) -> Option<BoundChange> {
    let text = |bound: &Bound<T>| {
        let excluded = if bound.is_excluded { ", excluded" } else { "" };
        format!("{}{excluded}", bound.value.to_string())
    };
    let (effect, what) = match (&old, &new) {
        (None, None) => return None,
        (None, Some(new)) => (
            Effect::Narrower,
            format!("{name} is {}, there was none", text(new)),
        ),
        (Some(old), None) => (
            Effect::Wider,
            format!("{name} was {}, there is none", text(old)),
        ),
        (Some(old), Some(new)) => {
            let effect = match new.strictness(old, side) {
                Some(Ordering::Equal) => return None,
                Some(Ordering::Less) => Effect::Wider,
                Some(Ordering::Greater) => Effect::Narrower,
                None => Effect::Unclear,
            };
            let what = format!("{name} is {}, it was {}", text(new), text(old));
            (effect, what)
        }
    };
    Some(BoundChange {
        effect,
        description: what,
    })
}

fn compare_multiple_of(old: Option<f64>, new: Option<f64>) -> Option<BoundChange> {
    let (effect, what) = match (old, new) {
        (None, Some(new)) => (
            Effect::Narrower,
            format!("multipleOf is {new}, there was none"),
        ),
        (Some(old), None) => (
            Effect::Wider,
            format!("multipleOf was {old}, there is none"),
        ),
        (Some(old), Some(new)) if old.to_bits() != new.to_bits() => {
            // Remainders of fractions are inexact, so these numbers are not compared.
            let is_whole = old.fract() == 0.0 && new.fract() == 0.0 && new != 0.0;
            // If the new number divides the old one, the old multiples are still accepted.
            let effect = if is_whole && old % new == 0.0 {
                Effect::Wider
            } else {
                Effect::Unclear
            };
            (effect, format!("multipleOf is {new}, it was {old}"))
        }
        _ => return None,
    };
    Some(BoundChange {
        effect,
        description: what,
    })
}
