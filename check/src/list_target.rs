/// A kind as the API server lists it.
#[derive(Clone, Copy, Debug)]
pub struct ListTarget<'a> {
    /// Group and version, such as `batch/v1`; only the version for the core group.
    pub version: &'a str,
    /// The kind, such as `Job`.
    pub kind: &'a str,
    /// The resource name in paths, such as `jobs`.
    pub plural: &'a str,
}

impl<'a> ListTarget<'a> {
    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &'a str {
        self.version.rsplit_once('/').map_or("", |it| it.0)
    }
}
