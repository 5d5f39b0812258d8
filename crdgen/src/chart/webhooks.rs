//! The template of the webhook configurations.
//!
//! The operations that the API server sends for kinds of other projects depend on the values: which
//! projects and which rules are on. `lockkeeper crds webhooks` computes them from the configuration;
//! here the template does, from the list of the rules of each kind.

use super::HEAD;
use super::placeholders::{self, Placeholder};
use crate::webhooks::{CaSource, Endpoint, NAME, configurations};
use crate::yaml::{self, YamlError};
use lockkeeper_api::config::{Action, ForeignKinds};
use lockkeeper_policies::registry::{self, Registration};
use lockkeeper_policies::rule::{Operation, RuleInfo};
use serde_json::{Value, json};

/// Which of the two configurations.
#[derive(Clone, Copy)]
enum Configuration {
    Validating,
    Mutating,
}

/// Both configurations, one after the other.
pub(super) fn template() -> Result<String, YamlError> {
    let validating = configuration(Configuration::Validating)?;
    let mutating = configuration(Configuration::Mutating)?;
    Ok(format!("{HEAD}{validating}---\n{mutating}"))
}

fn configuration(which: Configuration) -> Result<String, YamlError> {
    let mut out = head(which)?;
    for kind in registry::known_registrations() {
        let Some(entry) = entry(which, &kind)? else {
            continue;
        };
        let text = placeholders::render(&yaml::document(&[entry])?);
        out.push_str(&match kind.foreign {
            None => text,
            Some(project) => foreign_kind_template(project, &kind, &text),
        });
    }
    out.push_str(&declared_template(which)?);
    Ok(out)
}

/// The entries of the kinds in `webhook.jobKinds`. Those for validation only give previews.
fn declared_template(which: Configuration) -> Result<String, YamlError> {
    let kind = registry::declared("", "", "", true);
    let Some(mut entry) = entry(which, &kind)? else {
        return Ok(String::new());
    };
    for (pointer, hole) in [
        ("/name", Placeholder::DeclaredName),
        ("/failurePolicy", Placeholder::JobsFailurePolicy),
        ("/rules/0/apiGroups", Placeholder::DeclaredGroups),
        ("/rules/0/apiVersions", Placeholder::DeclaredVersions),
        ("/rules/0/resources", Placeholder::DeclaredPlurals),
    ] {
        set(&mut entry, pointer, hole);
    }
    let text = placeholders::render(&yaml::document(&[entry])?);
    let each = format!(
        "{{{{- range $jobKind := .Values.webhook.jobKinds }}}}\n{{{{- with $ }}}}\n{text}{{{{- end }}}}\n{{{{- end }}}}\n"
    );
    Ok(match which {
        Configuration::Mutating => each,
        Configuration::Validating => format!(
            "{{{{- if dig \"webhook\" \"preview\" false .Values.config }}}}\n{each}{{{{- end }}}}\n"
        ),
    })
}

/// The configuration without its entries.
fn head(which: Configuration) -> Result<String, YamlError> {
    let (validating, mutating) = configurations(&endpoint(), CaSource::Absent, &[]);
    let mut object = match which {
        Configuration::Validating => serde_json::to_value(validating)?,
        Configuration::Mutating => serde_json::to_value(mutating)?,
    };
    if let Some(object) = object.as_object_mut() {
        object.remove("webhooks");
    }
    Placeholder::CertManager.put(&mut object, &["metadata"]);
    super::put_labels(&mut object);
    Ok(placeholders::render(&yaml::document(&object)?) + "webhooks:\n")
}

fn endpoint() -> Endpoint {
    Endpoint::Service {
        namespace: Placeholder::Namespace.mark(),
        name: NAME.to_owned(),
        port: 443,
    }
}

/// The entry of a kind, if the configuration has one.
fn entry(which: Configuration, kind: &Registration) -> Result<Option<Value>, YamlError> {
    let mut kind = kind.clone();
    if kind.foreign.is_some() {
        // All operations of all rules: an entry without operations would not be generated.
        kind.validated_on = rules(&kind).flat_map(|(_, _, on)| on).copied().collect();
    }
    let (validating, mutating) = configurations(&endpoint(), CaSource::Absent, &[kind.clone()]);
    let mut object = match which {
        Configuration::Validating => serde_json::to_value(validating)?,
        Configuration::Mutating => serde_json::to_value(mutating)?,
    };
    let Some(entry) = object.pointer_mut("/webhooks/0") else {
        return Ok(None);
    };
    Placeholder::CaBundle.put(entry, &["clientConfig"]);
    if matches!(kind.kind.as_str(), "Job" | "JobSet") {
        set(entry, "/failurePolicy", Placeholder::JobsFailurePolicy);
    }
    if kind.foreign.is_some() {
        set(entry, "/failurePolicy", Placeholder::ForeignFailurePolicy);
        set(entry, "/rules/0/operations", Placeholder::Operations);
    }
    Ok(Some(entry.take()))
}

fn set(entry: &mut Value, pointer: &str, hole: Placeholder) {
    if let Some(value) = entry.pointer_mut(pointer) {
        *value = Value::String(hole.mark());
    }
}

/// The rules of a kind: the id, whether it is on by default, and the operations.
fn rules(kind: &Registration) -> impl Iterator<Item = (&'static str, bool, &'static [Operation])> {
    let of = |rule: &RuleInfo| rule.group == kind.group && rule.kind == kind.kind;
    let all = registry::all().into_iter().filter(of);
    let all: Vec<_> = all
        .map(|rule| (rule.id, rule.action != Action::Off, rule.operations))
        .collect();
    all.into_iter()
}

/// The entry, if the project's kinds are enabled and some rule for this kind is on.
fn foreign_kind_template(project: ForeignKinds, kind: &Registration, entry: &str) -> String {
    let rules = rules(kind).map(|(id, on, operations)| {
        let operations: Vec<&str> = operations.iter().map(|it| it.as_str()).collect();
        json!({"id": id, "on": on, "operations": operations})
    });
    let rules = Value::Array(rules.collect());
    format!(
        "{{{{- $operations := include \"lockkeeper.operations\" (dict \"root\" . \"project\" \"{project}\" \
         \"rules\" `{rules}`) }}}}\n{{{{- if $operations }}}}\n{entry}{{{{- end }}}}\n"
    )
}
