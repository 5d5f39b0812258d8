//! SC002 to SC005: their pages, and the upstream rules they cover.

use super::metadata::METADATA;
use crate::rule_info::{Layer, Operation, RuleInfo};
use lockkeeper_api::config::Action;
use lockkeeper_crd_schema::rule_ids::{CEL_RULE_VIOLATION, SCHEMA_VIOLATION, UNKNOWN_FIELD};

/// The rules for any kind with a known schema.
pub(crate) fn rule_infos() -> [RuleInfo; 4] {
    [
        info(
            SCHEMA_VIOLATION,
            "schema-violation",
            SCHEMA_COVERS,
            include_str!("schema_violation.md"),
        ),
        info(
            CEL_RULE_VIOLATION,
            "cel-rule-violation",
            CEL_COVERS,
            include_str!("cel_rule_violation.md"),
        ),
        info(
            METADATA,
            "invalid-metadata",
            METADATA_COVERS,
            include_str!("metadata.md"),
        ),
        info(
            UNKNOWN_FIELD,
            "unknown-field",
            &[],
            include_str!("unknown.md"),
        ),
    ]
}

fn info(
    id: &'static str,
    name: &'static str,
    covers: &'static [&'static str],
    doc: &'static str,
) -> RuleInfo {
    RuleInfo {
        id,
        name,
        group: "*".to_owned(),
        kind: "*".to_owned(),
        since: "0.1.0",
        action: Action::Enforce,
        covers,
        layers: &[Layer::Schema(Vec::new)],
        operations: &[Operation::Create, Operation::Update],
        ratchets: true,
        doc,
    }
}

const METADATA_COVERS: &[&str] = &["cq-name-dns-subdomain", "crd-metadata-name"];

/// Types, bounds, enumerations, formats, keys of lists, and defaults.
const SCHEMA_COVERS: &[&str] = &[
    "cohort-parent-name-format",
    "cohort-resource-groups-shape",
    "cq-admission-checks-count",
    "cq-admission-scope-mode-enum",
    "cq-cohort-name-format",
    "cq-concurrent-admission-mode-enum",
    "cq-covered-resources-count",
    "cq-default-fair-sharing-weight",
    "cq-default-flavor-fungibility",
    "cq-default-preemption",
    "cq-default-queueing-strategy",
    "cq-default-stop-policy",
    "cq-flavor-fungibility-enums",
    "cq-flavor-name-format",
    "cq-flavor-resources-count",
    "cq-flavors-count",
    "cq-nominal-quota-required",
    "cq-preemption-borrow-policy-enum",
    "cq-preemption-max-priority-threshold",
    "cq-preemption-reclaim-enum",
    "cq-preemption-within-cq-enum",
    "cq-queueing-strategy-enum",
    "cq-resource-groups-max",
    "cq-stop-policy-enum",
    "crd-int32-format",
    "crd-list-map-unique",
    "lq-cluster-queue-format",
    "lq-fair-sharing-weight-default",
    "lq-status-flavor-name-format",
    "lq-status-lists-max",
    "lq-stop-policy",
    "rf-node-labels-max",
    "rf-node-taints-max",
    "rf-tolerations-max",
    "rf-topology-name-format",
    "wl-admission-checks-structure",
    "wl-admission-structure",
    "wl-conditions-valid",
    "wl-default-active",
    "wl-default-podset-count",
    "wl-default-podset-name",
    "wl-max-exec-time-min",
    "wl-podset-count-min",
    "wl-podset-name-format",
    "wl-podsets-count",
    "wl-preemption-gates",
    "wl-priority-class-ref-group-enum",
    "wl-priority-class-ref-kind-enum",
    "wl-priority-class-ref-required-fields",
    "wl-queue-name-format",
    "wl-reclaimable-structure",
    "wl-requeue-count-min",
    "wl-slice-constraints-size",
    "wl-slice-size-positive",
    "wl-status-lists-limits",
    "wl-status-preemption-gates",
    "wl-topology-structure",
    "wpc-description-max",
    "wpc-value-required",
];

/// Upstream CEL rules.
const CEL_COVERS: &[&str] = &[
    "lq-cluster-queue-immutable",
    "rf-node-taint-effect-enum",
    "rf-topology-name-immutable",
    "rf-topology-needs-node-label",
    "toleration-effect-enum",
    "toleration-empty-key-exists",
    "toleration-exists-no-value",
    "toleration-operator-enum",
    "toleration-seconds-need-no-execute",
    "wl-admission-podsets-same-length",
    "wl-cluster-name-immutable",
    "wl-cluster-name-xor-nominated",
    "wl-max-exec-time-immutable-admitted",
    "wl-min-count-le-count",
    "wl-pod-priority-class-name-immutable-reserved",
    "wl-priority-class-ref-immutable-reserved",
    "wl-priority-class-ref-kind-matches-group",
    "wl-priority-required-with-class",
    "wl-queue-name-immutable-reserved",
    "wl-topology-levels-length",
    "wl-topology-pod-counts-length",
    "wl-topology-pod-counts-one-of",
    "wl-topology-roots-length",
    "wl-topology-values-one-of",
];
