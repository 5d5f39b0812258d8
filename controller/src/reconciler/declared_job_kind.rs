//! The kinds of jobs that `JobKind` objects declare.

use super::output::ObjectRef;
use super::write_tracker::WriteTracker;
use lockkeeper_api::JobKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A declared kind of jobs that is managed.
#[derive(Clone, Debug)]
pub struct DeclaredJobKind {
    /// The index of the kind.
    pub kind: usize,
    /// A number that changes with the declaration: all jobs of the kind have to be listed again.
    pub revision: u64,
    /// The declaration in effect. Its metadata may be older than those of the object.
    pub declaration: Arc<JobKind>,
}

/// The comparison of a declaration with the `CustomResourceDefinition` of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionCheck {
    /// The cluster does not have the definition. The kind may be one of an aggregated API.
    Missing,
    /// The definition was deleted, and with it all jobs of the kind.
    Deleted,
    /// The definition could not be read; with the reason.
    Unreadable(String),
    /// The declaration fits the definition.
    Fits,
    /// It does not; with all mistakes.
    Differs(String),
}

/// A `JobKind` as the watch shows it.
#[derive(Debug)]
pub(super) struct TrackedJobKind {
    pub(super) object: Arc<JobKind>,
    pub(super) tracker: WriteTracker,
    /// The last declaration without a mistake.
    pub(super) in_effect: Option<DeclaredJobKind>,
    /// The mistakes of the newest declaration.
    pub(super) mistakes: Option<String>,
    /// The comparison of the declaration in effect with the definition; `None` until the definition was looked for.
    pub(super) check: Option<DefinitionCheck>,
}

/// All `JobKind` objects, by name.
#[derive(Debug, Default)]
pub(super) struct DeclaredJobKinds {
    by_name: BTreeMap<String, TrackedJobKind>,
}

impl DeclaredJobKinds {
    pub(super) fn get(&self, name: &str) -> Option<&TrackedJobKind> {
        self.by_name.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut TrackedJobKind> {
        self.by_name.get_mut(name)
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<TrackedJobKind> {
        self.by_name.remove(name)
    }

    /// Stores a version, and returns its entry; `None` if a newer version is stored.
    pub(super) fn upsert(
        &mut self,
        name: &str,
        object: &Arc<JobKind>,
    ) -> Option<&mut TrackedJobKind> {
        let version = object.metadata.resource_version.as_deref();
        let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
        let entry = self.by_name.entry(name.to_owned());
        let entry = entry.or_insert_with(|| TrackedJobKind {
            object: Arc::clone(object),
            tracker: WriteTracker::default(),
            in_effect: None,
            mistakes: None,
            check: None,
        });
        entry.tracker.observe(version);
        if entry.tracker.version != version {
            return None;
        }
        entry.object = Arc::clone(object);
        Some(entry)
    }

    /// The declarations in effect.
    pub(super) fn in_effect(&self) -> impl Iterator<Item = &DeclaredJobKind> {
        self.by_name.values().filter_map(|it| it.in_effect.as_ref())
    }

    pub(super) fn object_refs(&self) -> impl Iterator<Item = ObjectRef> {
        self.by_name.keys().cloned().map(ObjectRef::JobKind)
    }

    /// Forgets the versions of all objects.
    pub(super) fn forget_versions(&mut self) {
        for entry in self.by_name.values_mut() {
            entry.tracker.forget_versions();
        }
    }
}
