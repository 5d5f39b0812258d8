//! The defaults of kinds with a pod template.

use super::{pod, volumes};
use crate::builtin::fields::{below, default, ensure, is_empty, is_set, items, set, text};
use serde_json::{Map, Value};

pub(super) fn set_deployment(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        default(spec, "replicas", 1);
        default(spec, "revisionHistoryLimit", 10);
        default(spec, "progressDeadlineSeconds", 600);
        if let Some(rolling) = rolling_update(spec, "strategy") {
            default(rolling, "maxUnavailable", "25%");
            default(rolling, "maxSurge", "25%");
        }
    }
    pod::set_template(object, &["spec", "template"]);
}

/// The parameters of a rolling update, which is the default strategy; `None` with another one.
fn rolling_update<'a>(spec: &'a mut Value, strategy: &str) -> Option<&'a mut Value> {
    let strategy = ensure(spec, strategy)?;
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        ensure(strategy, "rollingUpdate")
    } else {
        None
    }
}

pub(super) fn set_daemon_set(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        default(spec, "revisionHistoryLimit", 10);
        if let Some(rolling) = rolling_update(spec, "updateStrategy") {
            default(rolling, "maxUnavailable", 1);
            default(rolling, "maxSurge", 0);
        }
    }
    pod::set_template(object, &["spec", "template"]);
}

pub(super) fn set_replica_set(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        default(spec, "replicas", 1);
    }
    pod::set_template(object, &["spec", "template"]);
}

pub(super) fn set_replication_controller(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(spec) = ensure(object, "spec") {
        default(spec, "replicas", 1);
        if let Some(labels) = &labels
            && is_empty(spec, "selector")
        {
            set(spec, "selector", labels.clone());
        }
    }
    default_labels(object, labels);
    pod::set_template(object, &["spec", "template"]);
}

/// Sets the labels of an object without labels.
fn default_labels(object: &mut Value, labels: Option<Value>) {
    if let (Some(labels), Some(metadata)) = (labels, ensure(object, "metadata"))
        && is_empty(metadata, "labels")
    {
        set(metadata, "labels", labels);
    }
}

pub(super) fn set_stateful_set(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        default(spec, "podManagementPolicy", "OrderedReady");
        default(spec, "replicas", 1);
        default(spec, "revisionHistoryLimit", 10);
        if let Some(strategy) = ensure(spec, "updateStrategy") {
            if !is_set(strategy, "type") {
                set(strategy, "type", "RollingUpdate");
                default(strategy, "rollingUpdate", Map::new());
            }
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = below(strategy, &["rollingUpdate"])
            {
                default(rolling, "partition", 0);
                default(rolling, "maxUnavailable", 1);
            }
        }
        if let Some(policy) = ensure(spec, "persistentVolumeClaimRetentionPolicy") {
            default(policy, "whenDeleted", "Retain");
            default(policy, "whenScaled", "Retain");
        }
        for claim in items(spec, "volumeClaimTemplates") {
            set(claim, "apiVersion", "v1");
            set(claim, "kind", "PersistentVolumeClaim");
            volumes::set_claim(claim);
        }
    }
    pod::set_template(object, &["spec", "template"]);
}

pub(super) fn set_job(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    default_labels(object, labels);
    if let Some(spec) = ensure(object, "spec") {
        if !is_set(spec, "parallelism") && !is_set(spec, "completions") {
            set(spec, "completions", 1);
        }
        default(spec, "parallelism", 1);
        let retries = if is_set(spec, "backoffLimitPerIndex") {
            i32::MAX
        } else {
            6
        };
        default(spec, "backoffLimit", retries);
        default(spec, "completionMode", "NonIndexed");
        default(spec, "suspend", false);
        let replacement = if is_set(spec, "podFailurePolicy") {
            "Failed"
        } else {
            "TerminatingOrFailed"
        };
        default(spec, "podReplacementPolicy", replacement);
        default(spec, "manualSelector", false);
        set_failure_policy(spec);
    }
    pod::set_template(object, &["spec", "template"]);
}

pub(super) fn set_cron_job(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        default(spec, "concurrencyPolicy", "Allow");
        default(spec, "suspend", false);
        default(spec, "successfulJobsHistoryLimit", 3);
        default(spec, "failedJobsHistoryLimit", 1);
        if let Some(job) = below(spec, &["jobTemplate", "spec"]) {
            set_failure_policy(job);
        }
    }
    pod::set_template(object, &["spec", "jobTemplate", "spec", "template"]);
}

fn set_failure_policy(spec: &mut Value) {
    let Some(policy) = below(spec, &["podFailurePolicy"]) else {
        return;
    };
    for rule in items(policy, "rules") {
        for pattern in items(rule, "onPodConditions") {
            default(pattern, "status", "True");
        }
    }
}
