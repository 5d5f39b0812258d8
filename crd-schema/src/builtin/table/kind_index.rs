//! The releases that have a kind.

use super::text::{NEWEST, OLDER, release_of};
use crate::builtin::lifecycle::Lifecycle;
use crate::builtin::release::Release;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// `apiVersion` and name of a kind.
type Name = (&'static str, &'static str);

/// The supported releases that have a kind, served or removed, by `apiVersion` and name; the oldest release first. Much
/// smaller than the tables of all releases: most objects of other kinds are none of Kubernetes, and need no table.
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
        let mut kinds = BTreeMap::new();
        let mut release = Release::NEWEST;
        // The types follow the kinds.
        for line in NEWEST.lines().take_while(|it| !it.starts_with("type ")) {
            change(&mut kinds, line);
        }
        for line in OLDER.lines() {
            if let Some(older) = release_of(line) {
                out.add(release, &kinds);
                release = older;
            } else {
                change(&mut kinds, line);
            }
        }
        out.add(release, &kinds);
        for releases in out.releases.values_mut().flat_map(BTreeMap::values_mut) {
            releases.reverse();
        }
        out
    }

    fn add(&mut self, release: Release, kinds: &BTreeMap<Name, Lifecycle>) {
        let begun = kinds.iter().filter(|(_, it)| it.has_begun(release));
        for ((api_version, kind), _) in begun {
            let kinds = self.releases.entry(*api_version).or_default();
            kinds.entry(*kind).or_default().push(release);
        }
    }

    /// The releases that have a kind.
    pub(in crate::builtin) fn releases(&self, api_version: &str, kind: &str) -> &[Release] {
        let kinds = self.releases.get(api_version);
        let releases = kinds.and_then(|it| it.get(kind));
        releases.map_or(&[], Vec::as_slice)
    }

    /// All kinds of a release: `apiVersion` and name.
    pub(in crate::builtin) fn kinds(&self, release: Release) -> impl Iterator<Item = Name> + '_ {
        let versions = self.releases.iter();
        versions.flat_map(move |(version, kinds)| {
            let kinds = kinds.iter().filter(move |it| it.1.contains(&release));
            kinds.map(|(kind, _)| (*version, *kind))
        })
    }
}

/// Adds, replaces or removes the kind of a line.
fn change(kinds: &mut BTreeMap<Name, Lifecycle>, line: &'static str) {
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some("kind"), Some(api_version), Some(kind)) => {
            kinds.insert((api_version, kind), Lifecycle::parse(words.skip(1)));
        }
        (Some("-kind"), Some(api_version), Some(kind)) => {
            kinds.remove(&(api_version, kind));
        }
        _ => {}
    }
}
