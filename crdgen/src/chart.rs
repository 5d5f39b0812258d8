//! What of the Helm chart is derived: the templates of the definitions, of the webhook configurations and of the
//! admission policies, and the values with their schema. The rest of `charts/lockkeeper` is written by hand.
//!
//! Nothing is said twice: the templates come from the objects that [`crate::cli`] emits, with [`holes`] that Helm
//! fills in; `values.yaml` and `values.schema.json` come from one type, [`values::Values`].

mod holes;
pub mod values;
mod webhooks;

use crate::admission::policies;
use crate::definitions;
use crate::expressions::ExpressionError;
use crate::yaml::{self, YamlError};
use holes::Hole;
use lockkeeper_policies::settings::Settings;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The folder of the generated templates in that of the chart.
const GENERATED: &str = "templates/generated";

/// What every generated template begins with.
const HEAD: &str = "{{- /* Made by `crdgen chart`: change what it is made from. */}}\n";

/// A file of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is in the folder of the chart.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// Why a file cannot be made. A test makes all of them, so none of this happens.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// An object has no YAML form.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// An expression of a rule cannot be used.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
}

/// The generated files of the chart, in the order of their paths.
///
/// # Errors
///
/// When one cannot be made.
pub fn files() -> Result<Vec<File>, ChartError> {
    let mut out = Vec::new();
    for definition in definitions(&Settings::default())? {
        let plural = &definition.spec.names.plural;
        let object = kept(&definition)?;
        out.push(File {
            path: format!("{GENERATED}/crd-{plural}.yaml"),
            text: template(&[object], ".Values.crds.install")?,
        });
    }
    out.extend(of_policies()?);
    out.push(File {
        path: format!("{GENERATED}/webhooks.yaml"),
        text: webhooks::template()?,
    });
    out.push(File {
        path: "values.schema.json".to_owned(),
        text: values::schema_text()?,
    });
    out.push(File {
        path: "values.yaml".to_owned(),
        text: values::defaults_text()?,
    });
    Ok(out)
}

/// The admission policies. Those that fill in are left out where the API server does not know them.
fn of_policies() -> Result<Vec<File>, ChartError> {
    let policies = policies(&BTreeSet::new(), &Settings::default())?;
    let (mut validating, mut mutating) = (Vec::new(), Vec::new());
    for (policy, bindings) in policies.validating {
        validating.push(serde_json::to_value(policy).map_err(YamlError::from)?);
        for binding in bindings {
            validating.push(serde_json::to_value(binding).map_err(YamlError::from)?);
        }
    }
    for (policy, binding) in policies.mutating {
        mutating.push(serde_json::to_value(policy).map_err(YamlError::from)?);
        mutating.push(serde_json::to_value(binding).map_err(YamlError::from)?);
    }
    let known = r#".Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy""#;
    Ok(vec![
        File {
            path: format!("{GENERATED}/mutating-policies.yaml"),
            text: template(
                &mutating,
                &format!("and .Values.policies.install ({known})"),
            )?,
        },
        File {
            path: format!("{GENERATED}/validating-policies.yaml"),
            text: template(&validating, ".Values.policies.install")?,
        },
    ])
}

/// A template of objects that are there while `condition` holds, such as `.Values.crds.install`. Each gets the labels
/// of the chart. What in them looks like a template is none.
///
/// # Errors
///
/// When an object has no YAML form.
pub fn template<T: Serialize>(objects: &[T], condition: &str) -> Result<String, YamlError> {
    let mut documents = Vec::new();
    for object in objects {
        let mut object = serde_json::to_value(object)?;
        put_labels(&mut object);
        documents.push(holes::fill(&yaml::document(&object)?));
    }
    let documents = documents.join("---\n");
    Ok(format!(
        "{HEAD}{{{{- if {condition} }}}}\n{documents}{{{{- end }}}}\n"
    ))
}

/// The object, which an uninstallation leaves if the user wants that.
fn kept(object: &impl Serialize) -> Result<Value, YamlError> {
    let mut object = serde_json::to_value(object)?;
    Hole::Kept.put(&mut object, &["metadata"]);
    Ok(object)
}

/// Adds the labels of the chart to those of the object.
fn put_labels(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let labels = metadata.entry("labels");
        labels.or_insert_with(|| Value::Object(Map::new()));
    }
    Hole::Labels.put(object, &["metadata", "labels"]);
}

#[cfg(test)]
mod tests;
