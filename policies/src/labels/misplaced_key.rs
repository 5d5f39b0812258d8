#![doc = include_str!("misplaced_key.md")]

use super::HasLabelledMetadata;
use super::known_keys::{self, KeyLocation};
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;

/// The rule with the default action for the kind.
pub(crate) const fn rule<T: HasLabelledMetadata>(action: Action) -> Rule<T> {
    Rule {
        id: "LA002",
        name: "misplaced-key",
        since: "0.1.0",
        action,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("misplaced_key.md"),
        check: Check::Object(check),
    }
}

fn check<T: HasLabelledMetadata>(object: &T, out: &mut Findings) {
    object.each_metadata(&mut |holder, maps| {
        for (field, map, other) in maps.with_counterparts() {
            for (key, value) in map.into_iter().flatten() {
                let detail = match (field, known_keys::location(key)) {
                    ("annotations", Some(KeyLocation::Label)) => {
                        "is read as a label only; move it there"
                    }
                    ("labels", Some(KeyLocation::Annotation)) => {
                        "is read as an annotation only; move it there"
                    }
                    _ => continue,
                };
                // Some users set the key in both maps, for old and new programs.
                if other.is_none_or(|other| !other.contains_key(key)) {
                    let field = holder.path().field(field).key(key.as_str());
                    out.invalid(field, value, detail);
                }
            }
        }
    });
}
