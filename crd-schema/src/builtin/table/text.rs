//! The tables as text.

use crate::builtin::release::Release;

/// The kinds and types of the newest release. A static: a constant is copied into each codegen unit that uses it.
pub(super) static NEWEST: &str = include_str!("../../../builtin/kinds.txt");

/// The differences of each older release from the next newer one.
pub(super) static OLDER: &str = include_str!("../../../builtin/older.txt");

/// The lines of a release, and before them those of the newer ones that they change.
pub(super) fn lines(release: Release) -> impl Iterator<Item = &'static str> {
    let older = OLDER.lines().take_while(move |line| {
        let started = release_of(line);
        started.is_none_or(|it| it >= release)
    });
    NEWEST.lines().chain(older)
}

/// The release that starts with a line, such as `release 1.36.6`.
pub(super) fn release_of(line: &str) -> Option<Release> {
    let version = line.strip_prefix("release ")?;
    let (minor, _) = version.rsplit_once('.')?;
    Release::from_text(minor)
}
