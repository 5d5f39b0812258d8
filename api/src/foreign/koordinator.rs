//! Koordinator's ElasticQuota, and the labels and annotations that Koordinator reads.
//!
//! Names and meanings are those of Koordinator's `apis/extension/elastic_quota.go`.

use crate::foreign::foreign_kind;
use crate::quantity::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The API group of ElasticQuotas.
pub const GROUP: &str = "scheduling.sigs.k8s.io";

/// The version that is decoded.
pub const VERSION: &str = "v1alpha1";

/// The kind.
pub const KIND: &str = "ElasticQuota";

/// The root of all quotas. It need not exist as an object.
pub const ROOT_QUOTA: &str = "koordinator-root-quota";

/// The quota of the system's pods.
pub const SYSTEM_QUOTA: &str = "koordinator-system-quota";

/// The quota of pods without another quota.
pub const DEFAULT_QUOTA: &str = "koordinator-default-quota";

/// On a pod: the quota that it uses.
pub const QUOTA_NAME: &str = "quota.scheduling.koordinator.sh/name";

/// On a quota: its parent.
pub const PARENT: &str = "quota.scheduling.koordinator.sh/parent";

/// On a quota: `true` if it may have children, and no pods.
pub const IS_PARENT: &str = "quota.scheduling.koordinator.sh/is-parent";

/// On a quota: `true` if it is the root of a tree of its own.
pub const IS_ROOT: &str = "quota.scheduling.koordinator.sh/is-root";

/// On a quota: the tree that it belongs to.
pub const TREE_ID: &str = "quota.scheduling.koordinator.sh/tree-id";

/// On a quota: `true` if its min is not compared with the min of its parent and its children.
pub const ALLOW_FORCE_UPDATE: &str = "quota.scheduling.koordinator.sh/allow-force-update";

/// An annotation on a quota: its weight for the sharing of idle amounts, by resource, as JSON.
pub const SHARED_WEIGHT: &str = "quota.scheduling.koordinator.sh/shared-weight";

/// An annotation on a quota: the namespaces whose pods use it, as a JSON list.
pub const NAMESPACES: &str = "quota.scheduling.koordinator.sh/namespaces";

/// An annotation on a quota: the amounts that its tree guarantees to it, by resource, as JSON.
pub const GUARANTEED: &str = "quota.scheduling.koordinator.sh/guaranteed";

/// An annotation on a quota: the resources whose max cannot be lower than the usage, as a JSON list.
pub const STRICT_RESOURCES: &str = "quota.scheduling.koordinator.sh/max-strict-check-resource-keys";

/// On a pod: its quality-of-service class: `LSE`, `LSR`, `LS`, `BE` or `SYSTEM`.
pub const QOS_CLASS: &str = "koordinator.sh/qosClass";

/// On a pod: its priority within Koordinator's priority class.
pub const SUB_PRIORITY: &str = "koordinator.sh/priority";

/// On a pod: its Koordinator priority class, which takes precedence over `spec.priority`.
pub const PRIORITY_CLASS: &str = "koordinator.sh/priority-class";

/// An annotation on a pod that represents a reservation; only Koordinator's scheduler creates such pods.
pub const RESERVE_POD: &str = "scheduling.koordinator.sh/reserve-pod";

/// Annotation of a pod: the minimum number of running pods of its gang.
pub const GANG_MIN_AVAILABLE: &str = "gang.scheduling.koordinator.sh/min-available";

/// Annotation of a pod: the total number of pods of its gang.
pub const GANG_TOTAL_NUMBER: &str = "gang.scheduling.koordinator.sh/total-number";

/// Processor time that pods of higher priority have and do not use, in thousandths.
pub const BATCH_CPU: &str = "kubernetes.io/batch-cpu";

/// Memory that pods of higher priority have and do not use, in bytes.
pub const BATCH_MEMORY: &str = "kubernetes.io/batch-memory";

/// Amounts by resource name.
pub type ResourceQuantities = BTreeMap<String, Quantity>;

/// A share of a cluster's resources, with a min that is guaranteed and a max.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ElasticQuota {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Its specification.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: ElasticQuotaSpec,
    /// Its status.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: ElasticQuotaStatus,
}

/// The specification of an ElasticQuota.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ElasticQuotaSpec {
    /// The guaranteed amounts.
    #[serde(default)]
    pub min: Option<ResourceQuantities>,
    /// The maximum amounts.
    #[serde(default)]
    pub max: Option<ResourceQuantities>,
}

/// The status of an ElasticQuota.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ElasticQuotaStatus {
    /// The used amounts.
    #[serde(default)]
    pub used: Option<ResourceQuantities>,
}

foreign_kind!(
    ElasticQuota,
    kube::core::NamespaceResourceScope,
    GROUP,
    VERSION,
    KIND,
    "elasticquotas"
);

impl ElasticQuota {
    /// Its name; empty if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The value of a label; empty if there is none.
    #[must_use]
    pub fn label(&self, key: &str) -> &str {
        value(self.metadata.labels.as_ref(), key)
    }

    /// The value of an annotation; empty if there is none.
    #[must_use]
    pub fn annotation(&self, key: &str) -> &str {
        value(self.metadata.annotations.as_ref(), key)
    }

    /// The parent: [`ROOT_QUOTA`] by default, and empty for the root itself.
    #[must_use]
    pub fn parent(&self) -> &str {
        match self.label(PARENT) {
            "" if self.name() != ROOT_QUOTA => ROOT_QUOTA,
            parent => parent,
        }
    }

    /// Whether the quota may have children.
    #[must_use]
    pub fn is_parent(&self) -> bool {
        self.label(IS_PARENT) == "true"
    }

    /// The namespaces whose pods use it. As in Koordinator, a value that is not a JSON list counts as empty.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        serde_json::from_str(self.annotation(NAMESPACES)).unwrap_or_default()
    }

    /// The amounts that its tree guarantees. As in Koordinator, invalid JSON counts as empty.
    #[must_use]
    pub fn guaranteed(&self) -> ResourceQuantities {
        parse_quantities(self.annotation(GUARANTEED)).unwrap_or_default()
    }
}

/// Parses amounts in JSON from an annotation. As in Go, `null` is the empty value, and `null` for a resource is 0.
///
/// # Errors
///
/// The text is not JSON, or an amount is not a quantity.
pub fn parse_quantities(json: &str) -> Result<ResourceQuantities, serde_json::Error> {
    let read: Option<BTreeMap<String, Option<Quantity>>> = serde_json::from_str(json)?;
    let read = read.into_iter().flatten();
    Ok(read
        .map(|(resource, amount)| (resource, amount.unwrap_or(Quantity::ZERO)))
        .collect())
}

fn value<'a>(map: Option<&'a BTreeMap<String, String>>, key: &str) -> &'a str {
    map.and_then(|map| map.get(key))
        .map_or("", |value| value.as_str())
}

/// As in Go, `null` decodes as an empty object.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elastic_quota_is_read_leniently() {
        let bare: ElasticQuota = serde_json::from_value(json!({"spec": null})).unwrap();
        assert_eq!(bare, ElasticQuota::default());
        assert_eq!(bare.parent(), ROOT_QUOTA);

        let labels = json!({PARENT: "p", IS_PARENT: "True"});
        let annotations = json!({NAMESPACES: "[\"a\", 1]", GUARANTEED: "{"});
        let odd = json!({
            "metadata": {"name": "a", "labels": labels, "annotations": annotations},
            "spec": {"min": {"cpu": "-1"}, "max": null, "more": 1},
        });
        let odd: ElasticQuota = serde_json::from_value(odd).unwrap();
        assert_eq!((odd.parent(), odd.is_parent()), ("p", false));
        assert_eq!(odd.namespaces(), Vec::<String>::new());
        assert_eq!(odd.guaranteed(), ResourceQuantities::new());
        assert!(odd.spec.min.unwrap()["cpu"].is_negative());
        assert_eq!(odd.spec.max, None);
    }

    #[test]
    fn quantities_parse_as_in_go() {
        assert_eq!(parse_quantities("null").unwrap(), ResourceQuantities::new());
        let read = parse_quantities(r#"{"cpu": null, "memory": 5}"#).unwrap();
        assert_eq!(read["cpu"], Quantity::ZERO);
        assert_eq!(read["memory"], "5".parse().unwrap());
        assert!(parse_quantities("").is_err() && parse_quantities(r#"{"cpu": ""}"#).is_err());
    }
}
