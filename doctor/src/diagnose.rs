//! All checks on one snapshot.

use crate::checks::{availability, capacity, certificates, definitions, deletion, scope, served};
use crate::diagnosis::Diagnosis;
use crate::snapshot::Snapshot;
use lockkeeper_explain::WorldSettings;

/// Runs all checks. `settings` are those of the scheduler of the queues, and `now_s` is the current time, in seconds since
/// 1970. `handshakes` are the outcomes of TLS handshakes with [`Snapshot::endpoints`].
#[must_use]
pub fn diagnose(
    snapshot: &Snapshot,
    settings: &WorldSettings,
    handshakes: &[served::Handshake],
    now_s: i64,
) -> Diagnosis {
    let mut out = Diagnosis::default();
    scope::check(snapshot, &mut out);
    certificates::check(snapshot, now_s, &mut out);
    served::check(snapshot, handshakes, now_s, &mut out);
    availability::check(snapshot, &mut out);
    definitions::check(snapshot, &mut out);
    deletion::check(snapshot, now_s, &mut out);
    capacity::check(snapshot, settings, &mut out);
    out.findings
        .sort_by_cached_key(|it| (it.severity(), it.check.id, it.object.clone()));
    out
}
