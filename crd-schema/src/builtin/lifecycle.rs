//! The releases of Kubernetes that serve a kind.

use super::release::Release;

/// What the Go types of the API say about the releases of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lifecycle {
    pub(super) introduced: Option<Release>,
    pub(super) deprecated: Option<Release>,
    pub(super) removed: Option<Release>,
    /// `apiVersion` and kind.
    pub(super) replacement: Option<(&'static str, &'static str)>,
}

impl Lifecycle {
    /// Reads the end of a line of the table: the releases that introduce, deprecate and remove the kind, and the kind
    /// that replaces it.
    pub(super) fn parse(mut words: impl Iterator<Item = &'static str>) -> Self {
        let mut release = || words.next().and_then(Release::from_text);
        let (introduced, deprecated, removed) = (release(), release(), release());
        let replacement = match (words.next(), words.next()) {
            (Some(api_version), Some(kind)) if kind != "-" => Some((api_version, kind)),
            _ => None,
        };
        Self {
            introduced,
            deprecated,
            removed,
            replacement,
        }
    }

    /// Whether a release has the kind already, served or not.
    pub(super) fn has_begun(&self, release: Release) -> bool {
        self.introduced.is_none_or(|it| it <= release)
    }

    /// The release from which on Kubernetes does not serve the kind, if that is this release or an older one.
    pub(super) fn removed_by(&self, release: Release) -> Option<Release> {
        self.removed.filter(|it| *it <= release)
    }
}
