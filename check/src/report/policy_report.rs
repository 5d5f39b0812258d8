//! PolicyReports (`wgpolicyk8s.io/v1alpha2`): one for each namespace, and a `ClusterPolicyReport`.

use super::json::with_field;
use super::result::{CheckedFile, ReportedFinding, ReportedObject};
use crate::severity::Severity;
use lockkeeper_policies::registry;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const VERSION: &str = "wgpolicyk8s.io/v1alpha2";

/// The name of each report.
const NAME: &str = "lockkeeper";

/// The findings of a cluster, by namespace. The key of cluster-scoped objects is empty.
#[derive(Default)]
pub struct PolicyReports {
    by_namespace: BTreeMap<String, PolicyReport>,
    /// The names of rules by their ids.
    names: BTreeMap<&'static str, &'static str>,
}

#[derive(Default)]
struct PolicyReport {
    results: Vec<Value>,
    /// The number of objects without findings.
    pass: usize,
    fail: usize,
    warn: usize,
    skip: usize,
}

impl PolicyReports {
    /// Reports without results.
    #[must_use]
    pub fn new() -> Self {
        let all = registry::all().into_iter();
        Self {
            by_namespace: BTreeMap::new(),
            names: all.map(|it| (it.id, it.name)).collect(),
        }
    }

    /// Adds the findings of an object.
    pub fn add(&mut self, file: &CheckedFile) {
        let objects = file.outcome.iter().flat_map(|it| &it.objects);
        for object in objects {
            let namespace = object.identity.namespace.clone();
            let report = self.by_namespace.entry(namespace).or_default();
            if object.findings.is_empty() {
                report.pass = report.pass.saturating_add(1);
            }
            for reported in &object.findings {
                let (result, count) = match (&reported.suppressed, reported.severity) {
                    (Some(_), _) => ("skip", &mut report.skip),
                    (None, Severity::Error) => ("fail", &mut report.fail),
                    (None, Severity::Warning) => ("warn", &mut report.warn),
                };
                *count = count.saturating_add(1);
                let name = self.names.get(&*reported.finding.rule).copied();
                report
                    .results
                    .push(result_entry(object, reported, name, result));
            }
        }
    }

    /// The reports as YAML, a document each.
    ///
    /// # Errors
    ///
    /// A report cannot be serialized.
    pub fn yaml(&self) -> Result<String, serde_saphyr::ser::Error> {
        let mut out = String::new();
        for (namespace, report) in &self.by_namespace {
            let (kind, metadata) = if namespace.is_empty() {
                ("ClusterPolicyReport", json!({"name": NAME}))
            } else {
                (
                    "PolicyReport",
                    json!({"name": NAME, "namespace": namespace}),
                )
            };
            let PolicyReport {
                results,
                pass,
                fail,
                warn,
                skip,
            } = report;
            let report = json!({
                "apiVersion": VERSION, "kind": kind, "metadata": metadata,
                "summary": {"pass": pass, "fail": fail, "warn": warn, "error": 0, "skip": skip},
                "results": results,
            });
            out.push_str("---\n");
            out.push_str(&serde_saphyr::to_string(&report)?);
        }
        Ok(out)
    }
}

fn result_entry(
    object: &ReportedObject,
    reported: &ReportedFinding,
    name: Option<&str>,
    result: &str,
) -> Value {
    let (identity, finding) = (&object.identity, &reported.finding);
    let mut resource = json!({
        "apiVersion": identity.api_version, "kind": identity.kind, "name": identity.name,
    });
    if !identity.namespace.is_empty() {
        resource = with_field(resource, "namespace", json!(identity.namespace));
    }
    let severity = match reported.severity {
        Severity::Error => "high",
        Severity::Warning => "medium",
    };
    let mut properties = json!({"field": finding.field.text()});
    if let Some(reason) = &reported.suppressed {
        properties = with_field(properties, "reason", json!(reason));
    }
    json!({
        "source": NAME, "policy": finding.rule, "rule": name, "result": result, "severity": severity,
        "message": finding.text(), "resources": [resource], "properties": properties,
    })
}
