//! The API resource of a kind of jobs.

use std::borrow::Cow;

/// Group, version, kind and plural of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The group.
    pub group: Cow<'static, str>,
    /// The version.
    pub version: Cow<'static, str>,
    /// The kind.
    pub kind: Cow<'static, str>,
    /// The plural, as in a URL.
    pub plural: Cow<'static, str>,
}

impl Resource {
    /// The resource of a kind that is known at compile time.
    pub(super) const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
        }
    }

    /// `group/version`, as in `apiVersion`; the version alone in the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.to_string();
        }
        format!("{}/{}", self.group, self.version)
    }
}
