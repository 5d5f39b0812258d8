//! Koordinator's quotas (`koordinator-elasticquota`).
//!
//! Koordinator keeps the quotas in its own cache of two maps, and the state of a case is that cache. Our rules read
//! objects, so the state is converted to the objects that it was built from.

use crate::compare;
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::ElasticQuota;
use lockkeeper_policies::engine::Verdict;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Context, RuleInfo};
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::{Map, Value, json};

const PREFIX: &str = "quota.scheduling.koordinator.sh";

/// The rules that correspond to one inner check of Koordinator, by the operation of the case.
const INNER_CHECKS: [(&str, &[&str]); 6] = [
    (
        "CHECK-SELF",
        &[
            "eq-max-non-negative",
            "eq-min-non-negative",
            "eq-shared-weight-non-negative",
            "eq-min-keys-in-max",
            "eq-min-le-max",
            "eq-max-ge-used-strict",
        ],
    ),
    (
        "CHECK-RESOURCE-KEYS",
        &[
            "eq-max-keys-same-as-parent-children",
            "eq-min-keys-in-parent",
        ],
    ),
    (
        "CHECK-TREE-ID",
        &["eq-tree-id-same-as-parent", "eq-tree-id-same-as-children"],
    ),
    (
        "CHECK-MIN-SUM",
        &["eq-min-sum-le-parent", "eq-children-min-sum-le-self"],
    ),
    ("CHECK-PARENT-EXISTS", &["eq-parent-exists"]),
    ("CHECK-GUARANTEED", &["eq-guaranteed-for-min"]),
];

/// Whether a case tests Koordinator's cache: its two maps disagree. Our index of objects cannot be inconsistent. (The
/// other rows of `eq-internal-consistency` are calls without an object.)
pub fn has_broken_cache(case: &Value) -> bool {
    let is_internal = ids(case).contains(&"eq-internal-consistency");
    is_internal && !case["object"].is_null()
}

/// The differences of a case.
pub fn check(case: &Value) -> Vec<String> {
    let operation = case["operation"].as_str().unwrap();
    match operation {
        "DEFAULT" => check_defaults(case),
        "CREATE" | "UPDATE" | "DELETE" => {
            let verdict =
                evaluate_as::<ElasticQuota>(case, operation, is_koordinator_rule("ElasticQuota"));
            compare_with(case, verdict)
        }
        "POD-CREATE" | "POD-UPDATE" => {
            let operation = operation.trim_start_matches("POD-");
            let verdict = evaluate_as::<Pod>(case, operation, is_koordinator_rule("Pod"));
            compare_with(case, verdict)
        }
        _ => check_inner(case, operation),
    }
}

/// Rules that Koordinator enforces itself are off by default; the ones that are on are lockkeeper's own.
fn is_koordinator_rule(kind: &str) -> impl Fn(&RuleInfo) -> bool {
    move |rule| rule.kind == kind && rule.action == Action::Off
}

/// Runs one inner check on a quota in the form of the cache. The conditions that skip it are not part of it.
fn check_inner(case: &Value, operation: &str) -> Vec<String> {
    let inner = INNER_CHECKS.iter().find(|(check, _)| *check == operation);
    let Some((_, rows)) = inner else {
        return vec![format!("an operation {operation}")];
    };
    let mut case = case.clone();
    if case["object"]["metadata"].is_null() {
        case["object"] = quota(&case["object"], &case["state"]);
        case["object"]["metadata"]["labels"][format!("{PREFIX}/is-parent")] = "true".into();
    }
    let mut gates = case["featureGates"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    if let Some(is_on) = case["enableUpdateResourceKey"].as_bool() {
        gates.insert(
            "ElasticQuotaEnableUpdateResourceKey".to_owned(),
            is_on.into(),
        );
    }
    gates.insert("ElasticQuotaGuaranteeUsage".to_owned(), true.into());
    case["featureGates"] = gates.into();
    let verdict = evaluate_as::<ElasticQuota>(&case, "CREATE", |rule| covers_any(rule, rows));
    compare_with(&case, verdict)
}

/// Checks the object after defaulting, and that a rule rejects the objects that Koordinator does not default.
fn check_defaults(case: &Value) -> Vec<String> {
    let settings = compare::settings(case, &[]);
    let index = cluster_index(&case["state"]);
    let context = Context {
        cluster: &index,
        settings: &settings,
    };
    if case["allowed"] == false {
        // Values that were defaulted before the rejection are not stored.
        let rows = ids(case);
        let verdict = evaluate_as::<ElasticQuota>(case, "CREATE", |rule| covers_any(rule, &rows));
        return compare_with(case, verdict);
    }
    let object: ElasticQuota = serde_json::from_value(case["object"].clone()).unwrap();
    let mut filled = case["object"].clone();
    for item in ElasticQuota::defaults(&object, None, &context).items() {
        let add = json!([{"op": "add", "path": item.pointer, "value": item.value}]);
        let patch: json_patch::Patch = serde_json::from_value(add).unwrap();
        json_patch::patch(&mut filled, &patch).unwrap();
    }
    let expected = without_empty(&case["expectedObjectAfterDefaulting"]);
    let filled = without_empty(&filled);
    if expected.is_null() || filled == expected {
        return Vec::new();
    }
    vec![format!("filled {filled}"), format!("expected {expected}")]
}

/// The findings of the selected rules; none if the object cannot be decoded.
fn evaluate_as<T: ValidatedKind>(
    case: &Value,
    operation: &str,
    is_asked: impl Fn(&RuleInfo) -> bool,
) -> Option<Verdict> {
    let mut case = case.clone();
    case["operation"] = operation.into();
    if case["oldObject"].is_null() {
        case["oldObject"] = stored(&case);
    }
    let settings = compare::settings_with(&case, is_asked);
    compare::evaluate::<T>(&case, &settings, &cluster_index(&case["state"])).ok()
}

/// The object before the change, from the state, for cases without an old object.
fn stored(case: &Value) -> Value {
    let name = &case["object"]["metadata"]["name"];
    let mut quotas = case["state"]["quotas"].as_array().into_iter().flatten();
    let known = quotas.find(|info| info["name"] == *name && !name.is_null());
    known.map_or_else(|| json!({}), |info| quota(info, &case["state"]))
}

fn compare_with(case: &Value, verdict: Option<Verdict>) -> Vec<String> {
    let allowed = case["allowed"].as_bool().unwrap();
    let Some(verdict) = verdict else {
        let problem = allowed.then(|| "cannot be decoded".to_owned());
        return problem.into_iter().collect();
    };
    let texts: Vec<String> = verdict.denials.iter().map(ToString::to_string).collect();
    if verdict.allowed() != allowed {
        let expected = &case["expectedError"];
        return vec![format!("expected {expected}"), format!("found {texts:?}")];
    }
    if allowed {
        return Vec::new();
    }
    let found: Vec<&str> = verdict
        .denials
        .iter()
        .map(|finding| &*finding.rule)
        .collect();
    let is_found = |row: &&str| {
        let rules = registry::all();
        let mut rules = rules.iter().filter(|rule| rule.covers.contains(row));
        rules.any(|rule| found.contains(&rule.id))
    };
    let rows = ids(case);
    let missed = rows.iter().filter(|row| !is_found(row));
    missed
        .map(|row| format!("expected {row}, found {texts:?}"))
        .collect()
}

fn covers_any(rule: &RuleInfo, rows: &[&str]) -> bool {
    rows.iter().any(|row| rule.covers.contains(row))
}

fn ids(case: &Value) -> Vec<&str> {
    let ids = case["ruleIds"].as_array().into_iter().flatten();
    ids.filter_map(Value::as_str).collect()
}

/// The objects that a state was built from.
fn cluster_index(state: &Value) -> Index {
    let mut index = Index::default();
    index.mark_complete(IndexedKind::ElasticQuota);
    index.mark_complete(IndexedKind::Pod);
    for info in state["quotas"].as_array().into_iter().flatten() {
        let mut object = quota(info, state);
        // The names of cases are unique, their namespaces are not given.
        object["metadata"]["namespace"] = "elsewhere".into();
        facts::ingest(&mut index, &object).unwrap();
    }
    for pod in state["pods"].as_array().into_iter().flatten() {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": pod});
        facts::ingest(&mut index, &object).unwrap();
    }
    index
}

/// Converts a quota in the form of Koordinator's cache into its object.
fn quota(info: &Value, state: &Value) -> Value {
    let is = |field: &str| info[field] == true;
    let mut labels = Map::new();
    let mut label =
        |name: &str, value: &str| labels.insert(format!("{PREFIX}/{name}"), value.into());
    for (name, field) in [("parent", "parent"), ("tree-id", "treeID")] {
        label(name, info[field].as_str().unwrap_or_default());
    }
    for (name, field) in [
        ("is-parent", "isParent"),
        ("is-root", "isTreeRoot"),
        ("allow-force-update", "allowForceUpdate"),
    ] {
        label(name, if is(field) { "true" } else { "false" });
    }
    let namespaces = state["namespaceToQuota"].as_object().into_iter().flatten();
    let own = namespaces.filter(|(_, quota)| **quota == info["name"]);
    let own: Vec<&String> = own.map(|(namespace, _)| namespace).collect();
    json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {
            "name": info["name"],
            "labels": labels,
            "annotations": {
                format!("{PREFIX}/guaranteed"): info["guaranteed"].to_string(),
                format!("{PREFIX}/namespaces"): json!(own).to_string(),
            },
        },
        "spec": {"min": info["min"], "max": info["max"]},
    })
}

/// The object without an empty map of labels, which Koordinator adds.
fn without_empty(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| *value != json!({}));
    }
    object
}
