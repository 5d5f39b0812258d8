//! How a victim is marked.
//!
//! Source: Koordinator's proposal 20240115-support-job-level-preemption, "Adaptive Eviction Approach" and "API".
//! It shows JSON as the value of a label, which Kubernetes does not take. So the label has the preemptor's job
//! as its value, and an annotation of the same key the JSON.

use serde_json::json;

/// `scheduling.koordinator.sh/soft-eviction`: a label and an annotation on pods that are to be evicted.
pub struct MarkKey;

impl MarkKey {
    /// The key.
    pub const SOFT_EVICTION: &'static str = "scheduling.koordinator.sh/soft-eviction";
}

/// The most characters in the value of a label.
const LABEL_MAX: usize = 63;

/// How many of them the hash of a longer name takes.
const HASH_LEN: usize = 16;

/// The values of the label and of the annotation for a victim of a job. A name that is too long for a label, or
/// has characters that are not for labels, is cut and ends in its hash.
#[must_use]
pub fn soft_eviction(namespace: &str, job: &str) -> (String, String) {
    let annotation = json!({"preemptJob": job, "namespace": namespace}).to_string();
    (label_value(job), annotation)
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
    use super::{LABEL_MAX, label_value, soft_eviction};

    #[test]
    fn names_that_labels_do_not_take_are_hashed() {
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
                "{cut} gives no value of a label"
            );
            assert!(seen.insert(value), "{cut} has the value of another");
        }
        assert_eq!(
            label_value("a/b"),
            format!("ab-{:016x}", super::fnv_1a("a/b"))
        );
    }

    #[test]
    fn the_annotation_is_the_proposals_json() {
        let (label, annotation) = soft_eviction("team", "job2");
        assert_eq!(label, "job2");
        let told: serde_json::Value = serde_json::from_str(&annotation).unwrap();
        assert_eq!(told["preemptJob"], "job2");
        assert_eq!(told["namespace"], "team");
    }
}
