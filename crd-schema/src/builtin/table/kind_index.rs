//! The releases that have a kind.

use super::text;
use crate::builtin::lifecycle::Lifecycle;
use crate::builtin::release::Release;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// `apiVersion` and name of a kind.
type Name = (&'static str, &'static str);

/// The supported releases that have a kind, served or removed, by `apiVersion` and name; the oldest release first. Much
/// smaller than the tables of all releases, because most objects of other kinds are none of Kubernetes.
#[derive(Debug, Default)]
pub(in crate::builtin) struct KindIndex {
    releases: BTreeMap<&'static str, BTreeMap<&'static str, Vec<Release>>>,
}

impl KindIndex {
    /// The index, which is built once.
    pub(in crate::builtin) fn get() -> &'static Self {
        static INDEX: OnceLock<KindIndex> = OnceLock::new();
        INDEX.get_or_init(Self::build)
    }

    fn build() -> Self {
        let mut out = Self::default();
        for release in Release::SUPPORTED {
            for (api_version, kind) in names(release) {
                let kinds = out.releases.entry(api_version).or_default();
                kinds.entry(kind).or_default().push(release);
            }
        }
        out
    }

    /// The releases that have a kind.
    pub(in crate::builtin) fn releases(&self, api_version: &str, kind: &str) -> &[Release] {
        let kinds = self.releases.get(api_version);
        let releases = kinds.and_then(|it| it.get(kind));
        releases.map_or(&[], Vec::as_slice)
    }
}

/// The kinds of a release.
fn names(release: Release) -> BTreeSet<Name> {
    let mut out = BTreeSet::new();
    // Most lines are fields.
    let lines = text::lines(release).filter(|it| !it.starts_with(' '));
    for line in lines {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("kind"), Some(api_version), Some(kind)) => {
                if Lifecycle::parse(words.skip(1)).has_begun(release) {
                    out.insert((api_version, kind));
                } else {
                    out.remove(&(api_version, kind));
                }
            }
            (Some("-kind"), Some(api_version), Some(kind)) => {
                out.remove(&(api_version, kind));
            }
            _ => {}
        }
    }
    out
}
