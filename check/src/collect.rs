//! Collects the facts about other objects that rules look up, before any object is checked.

use crate::source::ParsedSource;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;

/// The facts of all objects in a file.
#[must_use]
pub fn collect_facts(source: &ParsedSource) -> Index {
    let mut index = Index::default();
    for object in source.documents.iter().filter_map(|it| it.object()) {
        // An object that does not fit its type has no facts; its check reports why.
        let _ = facts::collect(&mut index, object);
    }
    index
}
