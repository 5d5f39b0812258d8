//! How many inherent methods a type has, and in how many files.

use crate::source::Target;
use std::collections::{BTreeMap, BTreeSet};
use syn::{ImplItem, Item, Type};

/// The size of a type's inherent `impl` blocks.
#[derive(Default)]
pub(crate) struct Size {
    pub(crate) methods: usize,
    /// Indices into the target's files.
    pub(crate) files: BTreeSet<usize>,
}

/// By defining file and name of the type. Trait implementations and tests are not counted.
pub(crate) fn sizes(target: &Target) -> BTreeMap<String, Size> {
    let mut sizes: BTreeMap<String, Size> = BTreeMap::new();
    for (index, file) in target.files.iter().enumerate() {
        for (module, items) in &file.modules {
            for item in items {
                let Item::Impl(block) = item else { continue };
                let (None, Type::Path(path)) = (&block.trait_, &*block.self_ty) else {
                    continue;
                };
                let segments: Vec<String> = path
                    .path
                    .segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect();
                let home = target.resolve(module, &segments).unwrap_or(index);
                let key = format!("{} {}", target.files[home].path, segments.last().unwrap());
                let size = sizes.entry(key).or_default();
                size.methods += block
                    .items
                    .iter()
                    .filter(|item| matches!(item, ImplItem::Fn(_)))
                    .count();
                size.files.insert(index);
            }
        }
    }
    sizes
}
