//! The nearest path in a definition to one that it does not have.

use lockkeeper_crd_schema::crd::{DefinedField, FieldKind};

/// The least similarity of a suggested name.
const SIMILARITY_MIN: f64 = 0.8;

/// The most levels that are searched for a field of the same name.
const DEPTH_MAX: usize = 4;

/// The names whose fields are not searched: a pod template has hundreds.
const SKIPPED: [&str; 2] = ["template", "status"];

/// The most similar name of a field, if one is similar.
pub(crate) fn similar_name<'a>(of: DefinedField<'a>, name: &str) -> Option<&'a str> {
    let scored = of.names().map(|it| {
        let same = it.to_lowercase() == name.to_lowercase();
        let score = if same {
            1.0
        } else {
            strsim::jaro_winkler(it, name)
        };
        (it, score)
    });
    let similar = scored.filter(|it| it.1 >= SIMILARITY_MIN);
    similar.max_by(|a, b| a.1.total_cmp(&b.1)).map(|it| it.0)
}

/// The shortest path below a field that ends with a name and has an accepted kind: the names from the field on.
pub(crate) fn path_to(
    of: DefinedField<'_>,
    name: &str,
    kinds: &[FieldKind],
) -> Option<Vec<String>> {
    let mut level = vec![(Vec::new(), of)];
    for _ in 0..DEPTH_MAX {
        let mut below = Vec::new();
        for (path, field) in level {
            for child in field.names() {
                let Some(found) = field.field(child) else {
                    continue;
                };
                let mut path: Vec<String> = path.clone();
                path.push(child.to_owned());
                if child == name && (kinds.is_empty() || kinds.contains(&found.kind())) {
                    return Some(path);
                }
                if found.kind() == FieldKind::Object && !SKIPPED.contains(&child) {
                    below.push((path, found));
                }
            }
        }
        level = below;
    }
    None
}
