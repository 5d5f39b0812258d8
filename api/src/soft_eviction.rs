//! The label and the annotation of a victim.
//!
//! Source: Koordinator's proposal 20240115-support-job-level-preemption, "Adaptive Eviction Approach" and "API".
//! The proposal shows JSON as the value of a label, which Kubernetes rejects. So the value of the label is the
//! preemptor's job, and an annotation with the same key has the JSON.

use crate::labels::SOFT_EVICTION;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The preemptor of a victim, as in the annotation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct PreemptorRef {
    /// The job.
    #[serde(rename = "preemptJob")]
    pub job: String,
    /// Its namespace; the victim's by default. The proposal has no namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The most characters in the value of a label.
const LABEL_MAX: usize = 63;

/// The characters of the hash that a cut name ends in.
const HASH_LEN: usize = 16;

impl PreemptorRef {
    /// The value of the label [`SOFT_EVICTION`]. A name that is too long for a label, or has characters that are
    /// not for labels, is cut and ends in its hash.
    #[must_use]
    pub fn label(&self) -> String {
        label_value(&self.job)
    }

    /// The value of the annotation of the same key.
    ///
    /// # Errors
    ///
    /// Never: names are text.
    pub fn annotation(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// The preemptor of a marked pod: from the annotation, or from the label, whose value may be cut. Restores the
    /// rounds in flight after a restart.
    #[must_use]
    pub fn from_metadata(
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Option<Self> {
        let by_annotation = annotations.get(SOFT_EVICTION);
        let by_annotation = by_annotation.and_then(|it| serde_json::from_str(it).ok());
        let by_label = || {
            let job = labels.get(SOFT_EVICTION)?.clone();
            let namespace = None;
            Some(Self { job, namespace })
        };
        by_annotation.or_else(by_label)
    }
}

fn label_value(name: &str) -> String {
    let is_inner = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let is_end = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    let is_value = name.len() <= LABEL_MAX
        && name.chars().all(is_inner)
        && is_end(name.chars().next())
        && is_end(name.chars().last());
    if is_value {
        return name.to_owned();
    }
    let kept = LABEL_MAX.saturating_sub(HASH_LEN).saturating_sub(1);
    let kept: String = name.chars().filter(|it| is_inner(*it)).take(kept).collect();
    let kept = kept.trim_start_matches(|it: char| !it.is_ascii_alphanumeric());
    let hash = format!("{:0width$x}", fnv_1a(name), width = HASH_LEN);
    match kept {
        "" => hash,
        kept => format!("{kept}-{hash}"),
    }
}

/// FNV-1a of 64 bits: the same on every machine and in every version.
fn fnv_1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::{LABEL_MAX, PreemptorRef, SOFT_EVICTION, label_value};

    #[test]
    fn label_value_invalid_name_is_hashed() {
        let longest = "a".repeat(LABEL_MAX);
        for kept in ["job2", "a.b-c_d", longest.as_str()] {
            assert_eq!(label_value(kept), kept);
        }
        let long = "a".repeat(LABEL_MAX + 1);
        let mut seen = std::collections::BTreeSet::new();
        for cut in [long.as_str(), "", "job-", "-job", "a/b", "ä", "--"] {
            let value = label_value(cut);
            assert!(value.len() <= LABEL_MAX, "{cut}: {value}");
            assert_ne!(value, cut);
            assert_eq!(
                label_value(&value),
                value,
                "{cut} gives an invalid label value"
            );
            assert!(seen.insert(value), "{cut} has the value of another");
        }
        assert_eq!(
            label_value("a/b"),
            format!("ab-{:016x}", super::fnv_1a("a/b"))
        );
    }

    fn preemptor(job: &str, namespace: Option<&str>) -> PreemptorRef {
        PreemptorRef {
            job: job.to_owned(),
            namespace: namespace.map(str::to_owned),
        }
    }

    #[test]
    fn annotation_matches_proposal_json() {
        let team = preemptor("job2", Some("team"));
        let annotation = team.annotation().unwrap();
        assert_eq!(annotation, r#"{"preemptJob":"job2","namespace":"team"}"#);
        assert_eq!(team.label(), "job2");
    }

    #[test]
    fn preemptor_ref_round_trips() {
        let long = "a".repeat(LABEL_MAX + 1);
        let cut = label_value(&long);
        let json = |job: &str| format!(r#"{{"preemptJob":"{job}","namespace":"team"}}"#);
        for (label, annotation, expected) in [
            (None, None, None),
            (Some("job2"), None, Some(preemptor("job2", None))),
            (
                Some(cut.as_str()),
                Some(json(&long)),
                Some(preemptor(&long, Some("team"))),
            ),
            // As in the proposal, and as other clients may write it.
            (
                None,
                Some(r#"{"preemptJob":"job2"}"#.to_owned()),
                Some(preemptor("job2", None)),
            ),
            (None, Some("{preemptJob:job2...}".to_owned()), None),
            (
                Some("job2"),
                Some("true".to_owned()),
                Some(preemptor("job2", None)),
            ),
        ] {
            let map = |value: Option<&str>| {
                let pair = value.map(|it| (SOFT_EVICTION.to_owned(), it.to_owned()));
                pair.into_iter().collect()
            };
            let read = PreemptorRef::from_metadata(&map(label), &map(annotation.as_deref()));
            assert_eq!(read, expected, "{label:?} {annotation:?}");
        }
    }
}
