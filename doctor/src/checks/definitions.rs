//! CRDs and aggregated APIs.

use crate::catalogue::{API_SERVICE, CRD_CONDITION, STORED_VERSION};
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::snapshot::Snapshot;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

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
