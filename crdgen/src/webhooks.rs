//! The webhook configurations: the requests that the API server sends to the webhook.
//!
//! They are as narrow as the rules allow, because every request waits for the webhook: one entry
//! per kind, exactly the operations that some rule or default needs, never a subresource. Controllers
//! write `/status` often, and no rule reads it.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use lockkeeper_api::{GROUP, labels};
use lockkeeper_policies::metadata_cel::is_created_by_a_controller;
use lockkeeper_policies::registry::{NeededBy, Registration};
use lockkeeper_policies::rule::Operation;
use std::collections::BTreeSet;

/// The name of both configurations.
pub const NAME: &str = "lockkeeper";

/// The path that objects to be validated are sent to.
pub const VALIDATE_PATH: &str = "/validate";

/// The path that objects to be defaulted are sent to.
pub const MUTATE_PATH: &str = "/mutate";

/// How long the API server waits for the webhook, in seconds. Kubernetes' own default is 10, which
/// too long for a call in every write of an object; the webhook needs milliseconds. Its own deadline is
/// a second earlier, so that the user reads its reason and not that of a timeout.
pub const TIMEOUT_SECONDS: i32 = 5;

/// Where the API server finds the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Behind a Service of the cluster.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
        /// The port of the Service.
        port: u16,
    },
    /// At a URL, such as `https://lockkeeper.example.com:9443`; the paths are appended to it.
    Url(String),
}

/// The fields of a webhook that both configurations share.
struct WebhookEntry {
    name: String,
    client: WebhookClientConfig,
    rule: RuleWithOperations,
    failure_policy: &'static str,
    object_selector: Option<LabelSelector>,
    match_conditions: Vec<MatchCondition>,
}

/// The source of the CA certificates, as PEM, which sign the certificate of the webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaSource<'a> {
    /// None: the webhook injects the bundle, or the API server trusts the CAs of its
    /// machine.
    #[default]
    Absent,
    /// The given certificates.
    Inline(&'a [u8]),
    /// cert-manager injects the CA of this Certificate, given as `namespace/name`.
    CertManager(&'a str),
}

impl<'a> CaSource<'a> {
    /// The bundle that is given, or the Certificate that cert-manager takes it from.
    pub(crate) fn parts(self) -> (Option<&'a [u8]>, Option<&'a str>) {
        match self {
            Self::Absent => (None, None),
            Self::Inline(pem) => (Some(pem), None),
            Self::CertManager(certificate) => (None, Some(certificate)),
        }
    }
}

/// The annotation that makes cert-manager inject the bundle of the named Certificate.
pub(crate) const CERT_MANAGER: &str = "cert-manager.io/inject-ca-from";

/// The configurations for a webhook at `endpoint` whose certificate is signed by one of `authorities`, and which
/// is sent objects of these kinds.
#[must_use]
pub fn configurations(
    endpoint: &Endpoint,
    authorities: CaSource<'_>,
    kinds: &[Registration],
) -> (ValidatingWebhookConfiguration, MutatingWebhookConfiguration) {
    let (ca_bundle, certificate) = authorities.parts();
    let client = |path| client(endpoint, path, ca_bundle);
    let mut validating = Vec::new();
    let mut mutating = Vec::new();
    for kind in kinds {
        let name = |verb| name(kind, verb);
        if !kind.validated_on.is_empty() {
            let entry = WebhookEntry::new(
                name("validate"),
                client(VALIDATE_PATH),
                kind,
                &kind.validated_on,
                kind.selected_by,
            );
            validating.push(entry.validating());
        }
        if !kind.defaulted_on.is_empty() {
            let entry = WebhookEntry::new(
                name("default"),
                client(MUTATE_PATH),
                kind,
                &kind.defaulted_on,
                kind.defaults_selected_by,
            );
            mutating.push(entry.mutating());
        }
    }
    let metadata = ObjectMeta {
        name: Some(NAME.to_owned()),
        annotations: certificate.map(|it| [(CERT_MANAGER.to_owned(), it.to_owned())].into()),
        ..ObjectMeta::default()
    };
    (
        ValidatingWebhookConfiguration {
            metadata: metadata.clone(),
            webhooks: Some(validating),
        },
        MutatingWebhookConfiguration {
            metadata,
            webhooks: Some(mutating),
        },
    )
}

/// The name of a webhook, which is unique in its configuration.
fn name(kind: &Registration, verb: &str) -> String {
    let Registration { group, plural, .. } = kind;
    if kind.needed_by == NeededBy::UserRules {
        // The kind may also be in the configuration for lockkeeper's own rules.
        let of = match (kind.version.as_str(), group.as_str()) {
            ("*", "") => String::new(),
            ("*", group) => format!(".{group}"),
            (version, "") => format!(".{version}"),
            (version, group) => format!(".{version}.{group}"),
        };
        return format!("{plural}{of}.rules.{GROUP}");
    }
    if kind.needed_by == NeededBy::JobKind {
        return format!("{plural}.{group}.jobs.{GROUP}");
    }
    match kind.foreign {
        None => format!("{plural}.{verb}.{GROUP}"),
        // Another project's kind may have the plural of one of lockkeeper's kinds.
        Some(_) => format!("{plural}.{group}.{verb}.{GROUP}"),
    }
}

impl WebhookEntry {
    fn new(
        name: String,
        client: WebhookClientConfig,
        kind: &Registration,
        operations: &BTreeSet<Operation>,
        selected_by: &[&str],
    ) -> Self {
        Self {
            name,
            client,
            rule: rule(kind, operations),
            // No other component validates our own kinds, so they fail closed. Pods, Jobs and PriorityClasses are shared,
            // and other projects own their kinds: the cluster must keep working while the webhook is down. A Job that is
            // not suspended here is suspended by the controller when it sees it.
            failure_policy: if kind.own { "Fail" } else { "Ignore" },
            object_selector: object_selector(selected_by),
            match_conditions: match_conditions(kind, selected_by),
        }
    }

    fn validating(self) -> ValidatingWebhook {
        ValidatingWebhook {
            admission_review_versions: review_versions(),
            client_config: self.client,
            failure_policy: Some(self.failure_policy.to_owned()),
            match_conditions: Some(self.match_conditions),
            match_policy: Some(MATCH_POLICY.to_owned()),
            name: self.name,
            namespace_selector: None,
            object_selector: self.object_selector,
            rules: Some(vec![self.rule]),
            side_effects: SIDE_EFFECTS.to_owned(),
            timeout_seconds: Some(TIMEOUT_SECONDS),
        }
    }

    fn mutating(self) -> MutatingWebhook {
        MutatingWebhook {
            admission_review_versions: review_versions(),
            client_config: self.client,
            failure_policy: Some(self.failure_policy.to_owned()),
            match_conditions: Some(self.match_conditions),
            match_policy: Some(MATCH_POLICY.to_owned()),
            name: self.name,
            namespace_selector: None,
            object_selector: self.object_selector,
            // Another webhook may add what needs defaults after ours has run, such as a pod set.
            // Defaulting is idempotent, so a second call is harmless.
            reinvocation_policy: Some("IfNeeded".to_owned()),
            rules: Some(vec![self.rule]),
            side_effects: SIDE_EFFECTS.to_owned(),
            timeout_seconds: Some(TIMEOUT_SECONDS),
        }
    }
}

/// An object in another version of its kind is converted before it is sent.
pub(crate) const MATCH_POLICY: &str = "Equivalent";

/// The webhook has no side effects, so dry runs may call it too.
const SIDE_EFFECTS: &str = "None";

fn review_versions() -> Vec<String> {
    vec!["v1".to_owned()]
}

pub(crate) fn rule(kind: &Registration, operations: &BTreeSet<Operation>) -> RuleWithOperations {
    let scope = if kind.needed_by == NeededBy::UserRules {
        "*"
    } else if kind.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    let operations = operations.iter().map(|operation| operation.as_str());
    RuleWithOperations {
        api_groups: Some(vec![kind.group.clone()]),
        api_versions: Some(vec![kind.version.clone()]),
        operations: Some(operations.map(str::to_owned).collect()),
        resources: Some(vec![kind.plural.clone()]),
        scope: Some(scope.to_owned()),
    }
}

/// Selects objects that have the label, before or after an update. A selector cannot express that an object has one of
/// several labels: there is a match condition for them.
pub(crate) fn object_selector(labels: &[&str]) -> Option<LabelSelector> {
    let [key] = labels else {
        return None;
    };
    Some(LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: (*key).to_owned(),
            operator: "Exists".to_owned(),
            values: None,
        }]),
        match_labels: None,
    })
}

/// The condition that an object has one of several labels, before or after an update.
fn has_one_of(labels: &[&str]) -> String {
    let has = |object: &str, absent_on: &str| {
        let labels = labels
            .iter()
            .map(|key| format!("'{key}' in {object}.metadata.labels"));
        let labels = labels.collect::<Vec<_>>().join(" || ");
        format!(
            "(request.operation != '{absent_on}' && has({object}.metadata.labels) && ({labels}))"
        )
    };
    format!(
        "{} || {}",
        has("object", "DELETE"),
        has("oldObject", "CREATE")
    )
}

/// The condition that a request is no update by the garbage collector. Without an account of its own it acts as the
/// controller manager.
pub(crate) const NOT_BY_GARBAGE_COLLECTOR: &str = "request.operation != 'UPDATE' \
     || !(request.userInfo.username in ['system:serviceaccount:kube-system:generic-garbage-collector', \
     'system:kube-controller-manager'])";

/// The match conditions of a kind whose objects have one of the labels.
pub(crate) fn match_conditions(kind: &Registration, selected_by: &[&str]) -> Vec<MatchCondition> {
    let mut conditions = vec![condition(
        "not-by-the-api-server",
        "request.userInfo.username != 'system:apiserver'",
    )];
    // The API server creates these classes and rejects others with the prefix. They have no
    // namespace, so a namespace selector could not exempt them. On DELETE there is only the old
    // object; an object with generateName has no name yet.
    if kind.group == "scheduling.k8s.io" && kind.kind == "PriorityClass" {
        conditions.push(condition(
            "not-a-system-class",
            "request.operation == 'DELETE' \
             ? !oldObject.metadata.name.startsWith('system-') \
             : !has(object.metadata.name) || !object.metadata.name.startsWith('system-')",
        ));
    }
    // It removes references to deleted owners, also of running jobs.
    if selected_by.contains(&labels::QUEUE_NAME) && kind.needed_by == NeededBy::Rules {
        conditions.push(condition(
            "not-an-update-of-the-garbage-collector",
            NOT_BY_GARBAGE_COLLECTOR,
        ));
    }
    if kind.needed_by == NeededBy::JobKind {
        conditions.push(not_by_a_controller());
    }
    if selected_by.len() > 1 {
        conditions.push(condition("has-a-label", &has_one_of(selected_by)));
    }
    conditions
}

/// The condition that a new object is not one that a controller creates for an object of its own.
pub(crate) fn not_by_a_controller() -> MatchCondition {
    let is_created_by_a_controller = is_created_by_a_controller("object");
    condition(
        "not-by-a-controller",
        &format!("!({is_created_by_a_controller})"),
    )
}

pub(crate) fn condition(name: &str, expression: &str) -> MatchCondition {
    MatchCondition {
        expression: expression.to_owned(),
        name: name.to_owned(),
    }
}

pub(crate) fn client(
    endpoint: &Endpoint,
    path: &str,
    ca_bundle: Option<&[u8]>,
) -> WebhookClientConfig {
    let ca_bundle = ca_bundle.map(|pem| ByteString(pem.to_vec()));
    match endpoint {
        Endpoint::Service {
            namespace,
            name,
            port,
        } => WebhookClientConfig {
            ca_bundle,
            service: Some(ServiceReference {
                name: name.clone(),
                namespace: namespace.clone(),
                path: Some(path.to_owned()),
                port: Some((*port).into()),
            }),
            url: None,
        },
        Endpoint::Url(base) => WebhookClientConfig {
            ca_bundle,
            service: None,
            url: Some(format!("{}{path}", base.trim_end_matches('/'))),
        },
    }
}

#[cfg(test)]
mod tests;
