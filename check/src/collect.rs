//! Collects the facts about other objects that rules look up, before any object is checked.

use crate::source::ParsedSource;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;

/// The facts of all objects in a file. A patch has none: the object that it changes has them.
#[must_use]
pub fn collect_facts(source: &ParsedSource) -> Index {
    let mut index = Index::default();
    let whole = source.documents.iter().filter(|it| !it.is_patch);
    for object in whole.filter_map(|it| it.object()) {
        // An object that does not fit its type has no facts; its check reports why.
        let _ = facts::collect(&mut index, object);
    }
    index
}
