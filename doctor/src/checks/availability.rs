//! The servers behind webhooks: their Services, replicas and disruption budgets.

use crate::catalogue::{BLOCKING_BUDGET, Check, NO_BUDGET, NO_ENDPOINT, NO_SERVICE, ONE_REPLICA};
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::snapshot::{Kind, PodOwner, Snapshot, conversion_endpoint, is_ready, names};
use crate::webhook::ServiceName;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lockkeeper_cluster_state::label_selector::{Selector, matches};
use std::collections::BTreeMap;

/// The most callers that a finding names.
const NAMED_MAX: usize = 2;

/// What calls a Service.
#[derive(Default)]
struct Callers {
    /// The objects that name it.
    objects: Vec<String>,
    /// Whether a call that fails rejects a request.
    must_answer: bool,
}

impl Callers {
    /// Their names, some of them if there are many.
    fn text(&self) -> String {
        let named: Vec<&str> = self
            .objects
            .iter()
            .take(NAMED_MAX)
            .map(String::as_str)
            .collect();
        let more = self.objects.len().saturating_sub(NAMED_MAX);
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}", named.join(", "))
    }
}

pub(crate) fn check(snapshot: &Snapshot, out: &mut Diagnosis) {
    for (service, callers) in callers(snapshot) {
        let known = snapshot.services.iter();
        let found = known.clone().find(|it| names(&it.metadata, &service));
        match found {
            Some(found) => check_servers(snapshot, &service, found, &callers, out),
            None if snapshot.is_complete(Kind::Service) => {
                report(&NO_SERVICE, &service, "metadata.name", out, || {
                    format!("called by {}", callers.text())
                });
            }
            None => out.skip(format!(
                "Service {}/{} and its servers: it is not in the input",
                service.namespace, service.name
            )),
        }
    }
}

fn callers(snapshot: &Snapshot) -> BTreeMap<ServiceName, Callers> {
    let mut all: BTreeMap<ServiceName, Callers> = BTreeMap::new();
    let mut add = |service: ServiceName, object: String, must_answer: bool| {
        let callers = all.entry(service).or_default();
        callers.must_answer |= must_answer;
        if !callers.objects.contains(&object) {
            callers.objects.push(object);
        }
    };
    for webhook in &snapshot.webhooks {
        if let Some(endpoint) = &webhook.endpoint {
            add(
                endpoint.service.clone(),
                webhook.object.clone(),
                webhook.must_answer,
            );
        }
    }
    for definition in &snapshot.definitions {
        if let Some(endpoint) = conversion_endpoint(definition) {
            let name = definition.metadata.name.as_deref().unwrap_or_default();
            // Without a conversion, objects cannot be read.
            add(
                endpoint.service,
                format!("CustomResourceDefinition/{name}"),
                true,
            );
        }
    }
    all
}

fn report(
    check: &'static Check,
    service: &ServiceName,
    field: &str,
    out: &mut Diagnosis,
    evidence: impl FnOnce() -> String,
) {
    out.findings.push(Finding {
        check,
        object: format!("Service/{}/{}", service.namespace, service.name),
        field: field.to_owned(),
        evidence: evidence(),
    });
}

fn check_servers(
    snapshot: &Snapshot,
    service: &ServiceName,
    found: &Service,
    callers: &Callers,
    out: &mut Diagnosis,
) {
    let spec = found.spec.as_ref();
    // Its server is outside of the cluster.
    if spec.and_then(|it| it.type_.as_deref()) == Some("ExternalName") {
        out.skip(format!(
            "the server of Service {}/{}: its type is ExternalName",
            service.namespace, service.name
        ));
        return;
    }
    if snapshot.is_complete(Kind::EndpointSlice) {
        let slices = snapshot.slices_of(service);
        let mut endpoints = slices.flat_map(|it| it.endpoints.iter().flatten());
        if !endpoints.any(is_ready) {
            report(&NO_ENDPOINT, service, "spec.selector", out, || {
                format!("called by {}", callers.text())
            });
        }
    }
    let selector = spec.and_then(|it| it.selector.as_ref());
    // A Service without a selector has endpoints that a controller writes.
    let Some(selector) = selector.filter(|it| !it.is_empty()) else {
        return;
    };
    if !callers.must_answer {
        return;
    }
    let owners = snapshot.owners.iter();
    let owners = owners.filter(|it| {
        let has = |(key, value): (&String, &String)| it.labels.get(key) == Some(value);
        it.namespace == service.namespace && selector.iter().all(has)
    });
    let owners: Vec<&PodOwner> = owners.collect();
    let [owner] = owners.as_slice() else {
        out.skip(format!(
            "the replicas behind Service {}/{}: {} controllers in the input run its pods",
            service.namespace,
            service.name,
            owners.len()
        ));
        return;
    };
    match owner.replicas {
        // None are wanted: the missing endpoint is the finding.
        None | Some(..=0) => {}
        Some(1) => out.findings.push(Finding {
            check: &ONE_REPLICA,
            object: owner.object.clone(),
            field: "spec.replicas".to_owned(),
            evidence: format!("1 replica serves {}", callers.text()),
        }),
        Some(replicas) => check_budget(snapshot, owner, replicas, out),
    }
}

fn check_budget(snapshot: &Snapshot, owner: &PodOwner, replicas: i32, out: &mut Diagnosis) {
    let budgets = snapshot.budgets.iter().filter(|it| {
        let selector = it.spec.as_ref().and_then(|it| it.selector.as_ref());
        let is_own =
            it.metadata.namespace.as_deref().unwrap_or(&owner.namespace) == owner.namespace;
        is_own && selector.is_some_and(|it| matches(&Selector::from(it), &owner.labels))
    });
    let budgets: Vec<&PodDisruptionBudget> = budgets.collect();
    if budgets.is_empty() {
        if snapshot.is_complete(Kind::PodDisruptionBudget) {
            out.findings.push(Finding {
                check: &NO_BUDGET,
                object: owner.object.clone(),
                field: "spec.replicas".to_owned(),
                evidence: format!("{replicas} replicas, and no disruption budget selects them"),
            });
        } else {
            out.skip(format!(
                "the disruption budget of {}: none is in the input",
                owner.object
            ));
        }
    }
    for budget in budgets {
        if let Some((field, evidence)) = blocking_field(budget, replicas) {
            let namespace = &owner.namespace;
            let name = budget.metadata.name.as_deref().unwrap_or_default();
            out.findings.push(Finding {
                check: &BLOCKING_BUDGET,
                object: format!("PodDisruptionBudget/{namespace}/{name}"),
                field: field.to_owned(),
                evidence,
            });
        }
    }
}

/// The field of a budget that allows no eviction while all replicas are ready. A percentage of `minAvailable` is rounded up,
/// as in the disruption controller.
fn blocking_field(budget: &PodDisruptionBudget, replicas: i32) -> Option<(&'static str, String)> {
    let spec = budget.spec.as_ref()?;
    let text = |it: &IntOrString| match it {
        IntOrString::Int(count) => count.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    if let Some(most) = &spec.max_unavailable {
        let is_blocking = matches!(text(most).as_str(), "0" | "0%");
        return is_blocking.then(|| ("spec.maxUnavailable", text(most)));
    }
    let least = spec.min_available.as_ref()?;
    let is_blocking = match least {
        IntOrString::Int(count) => *count >= replicas,
        IntOrString::String(percent) => {
            let percent: i64 = percent.strip_suffix('%')?.parse().ok()?;
            let scaled = percent
                .saturating_mul(i64::from(replicas))
                .saturating_add(99);
            scaled.div_euclid(100) >= i64::from(replicas)
        }
    };
    is_blocking.then(|| {
        (
            "spec.minAvailable",
            format!("{} of {replicas} replicas", text(least)),
        )
    })
}
