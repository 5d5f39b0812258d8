//! Objects that wait for their finalizers.

use crate::catalogue::FINALIZER;
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::snapshot::Snapshot;
use k8s_openapi::jiff::Timestamp;

/// How long a deletion may take, in seconds.
const DELETION_MAX_S: i64 = 600;

pub(crate) fn check(snapshot: &Snapshot, now_s: i64, out: &mut Diagnosis) {
    for deleted in &snapshot.deleted {
        let at: Option<Timestamp> = deleted.deleted.parse().ok();
        let is_recent = at.is_none_or(|it| now_s.saturating_sub(it.as_second()) <= DELETION_MAX_S);
        if is_recent || deleted.finalizers.is_empty() {
            continue;
        }
        let mut evidence = format!(
            "deleted at {}, waits for {}",
            deleted.deleted,
            deleted.finalizers.join(", ")
        );
        for message in &deleted.remaining {
            evidence.push_str(": ");
            evidence.push_str(message);
        }
        out.findings.push(Finding {
            check: &FINALIZER,
            object: deleted.object.clone(),
            field: "metadata.finalizers".to_owned(),
            evidence,
        });
    }
}
