//! CRDs and aggregated APIs.

use crate::catalogue::{API_SERVICE, CRD_CONDITION, JOB_KIND_MISMATCH, STORED_VERSION};
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::snapshot::Snapshot;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::check_against_definition;

/// The conditions of a CRD that can be served, and their status.
const HEALTHY: [(&str, &str); 3] = [
    ("Established", "True"),
    ("NamesAccepted", "True"),
    ("NonStructuralSchema", "False"),
];

pub(crate) fn check(snapshot: &Snapshot, out: &mut Diagnosis) {
    for definition in &snapshot.definitions {
        let name = definition.metadata.name.as_deref().unwrap_or_default();
        let object = format!("CustomResourceDefinition/{name}");
        check_conditions(definition, &object, out);
        check_stored_versions(definition, &object, out);
    }
    for declaration in &snapshot.job_kinds {
        check_job_kind(declaration, &snapshot.definitions, out);
    }
    for service in &snapshot.api_services {
        let conditions = service.status.iter().flat_map(|it| it.conditions.iter());
        let unavailable = conditions.flatten();
        let unavailable = unavailable.filter(|it| it.type_ == "Available" && it.status == "False");
        let name = service.metadata.name.as_deref().unwrap_or_default();
        out.findings.extend(unavailable.map(|it| Finding {
            check: &API_SERVICE,
            object: format!("APIService/{name}"),
            field: "status.conditions".to_owned(),
            evidence: it.message.clone().unwrap_or_default(),
        }));
    }
}

/// A kind that is not installed yet has no definition, and no finding.
fn check_job_kind(
    declaration: &JobKind,
    definitions: &[CustomResourceDefinition],
    out: &mut Diagnosis,
) {
    let name = declaration.metadata.name.as_deref();
    let mut found = definitions.iter();
    let definition = found.find(|it| it.metadata.name.as_deref() == name);
    let definition = definition.and_then(|it| serde_json::to_value(it).ok());
    let Some(definition) = definition else {
        return;
    };
    let errors = check_against_definition(declaration, &definition).err();
    let object = format!("JobKind/{}", name.unwrap_or_default());
    out.findings
        .extend(errors.into_iter().flatten().map(|it| Finding {
            check: &JOB_KIND_MISMATCH,
            object: object.clone(),
            field: it.field.to_string(),
            evidence: it.problem,
        }));
}

fn check_conditions(definition: &CustomResourceDefinition, object: &str, out: &mut Diagnosis) {
    let conditions = definition.status.iter().flat_map(|it| it.conditions.iter());
    for condition in conditions.flatten() {
        let healthy = HEALTHY.iter().find(|(kind, _)| *kind == condition.type_);
        if healthy.is_some_and(|(_, status)| condition.status != *status) {
            let message = condition.message.as_deref().unwrap_or_default();
            out.findings.push(Finding {
                check: &CRD_CONDITION,
                object: object.to_owned(),
                field: "status.conditions".to_owned(),
                evidence: format!("{}={}: {message}", condition.type_, condition.status),
            });
        }
    }
}

fn check_stored_versions(definition: &CustomResourceDefinition, object: &str, out: &mut Diagnosis) {
    let stored = definition.status.iter();
    for stored in stored.flat_map(|it| it.stored_versions.iter().flatten()) {
        let mut versions = definition.spec.versions.iter();
        let version = versions.find(|it| it.name == *stored);
        let state = match version {
            None => "is not in spec.versions",
            Some(it) if it.storage => continue,
            Some(it) if !it.served => "is not served",
            Some(it) if it.deprecated == Some(true) => "is deprecated",
            Some(_) => continue,
        };
        out.findings.push(Finding {
            check: &STORED_VERSION,
            object: object.to_owned(),
            field: "status.storedVersions".to_owned(),
            evidence: format!("{stored} {state}"),
        });
    }
}
