//! What was found as PolicyReports (`wgpolicyk8s.io/v1alpha2`), one for each namespace, and a ClusterPolicyReport.

use super::Severity;
use super::report::{CheckedFile, ReportedFinding, ReportedObject, with_field};
use anyhow::Error;
use lockkeeper_policies::registry;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const VERSION: &str = "wgpolicyk8s.io/v1alpha2";

/// The name of each report.
const NAME: &str = "lockkeeper";

/// Everything that was found, by namespace; what is in none stands under the empty one.
#[derive(Default)]
pub(super) struct PolicyReports {
    by_namespace: BTreeMap<String, PolicyReport>,
    /// The names of rules by their ids.
    names: BTreeMap<&'static str, &'static str>,
}

#[derive(Default)]
struct PolicyReport {
    results: Vec<Value>,
    /// How many objects nothing was found of.
    pass: usize,
    fail: usize,
    warn: usize,
    skip: usize,
}

impl PolicyReports {
    pub(super) fn new() -> Self {
        let all = registry::all().into_iter();
        Self {
            by_namespace: BTreeMap::new(),
            names: all.map(|it| (it.id, it.name)).collect(),
        }
    }

    pub(super) fn add(&mut self, judged: &CheckedFile) {
        let objects = judged.outcome.iter().flat_map(|it| &it.objects);
        for object in objects {
            let namespace = object.identity.namespace.clone();
            let report = self.by_namespace.entry(namespace).or_default();
            if object.findings.is_empty() {
                report.pass = report.pass.saturating_add(1);
            }
            for told in &object.findings {
                let (result, count) = match (&told.suppressed, told.severity) {
                    (Some(_), _) => ("skip", &mut report.skip),
                    (None, Severity::Error) => ("fail", &mut report.fail),
                    (None, Severity::Warning) => ("warn", &mut report.warn),
                };
                *count = count.saturating_add(1);
                let name = self.names.get(&*told.finding.rule).copied();
                report
                    .results
                    .push(result_entry(object, told, name, result));
            }
        }
    }

    /// As YAML, a document for each report.
    pub(super) fn yaml(&self) -> Result<String, Error> {
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
    told: &ReportedFinding,
    name: Option<&str>,
    result: &str,
) -> Value {
    let (identity, finding) = (&object.identity, &told.finding);
    let mut resource = json!({
        "apiVersion": identity.api_version, "kind": identity.kind, "name": identity.name,
    });
    if !identity.namespace.is_empty() {
        resource = with_field(resource, "namespace", json!(identity.namespace));
    }
    let severity = match told.severity {
        Severity::Error => "high",
        Severity::Warning => "medium",
    };
    let mut properties = json!({"field": finding.field.text()});
    if let Some(reason) = &told.suppressed {
        properties = with_field(properties, "reason", json!(reason));
    }
    json!({
        "source": NAME, "policy": finding.rule, "rule": name, "result": result, "severity": severity,
        "message": finding.text(), "resources": [resource], "properties": properties,
    })
}
