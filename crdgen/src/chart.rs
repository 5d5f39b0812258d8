//! The generated files of the Helm chart: the templates of the CRDs, of the admission policies and of
//! the webhook configurations, and the values with their schema. The rest of `charts/lockkeeper` is
//! written by hand.
//!
//! The templates are the objects that [`crate::cli`] emits, with placeholders that Helm replaces;
//! `values.yaml` and `values.schema.json` come from one type, [`values::Values`].

mod placeholders;
mod policies;
mod rule_gates;
pub mod values;
mod webhooks;

use crate::cel::ExpressionError;
use crate::definitions;
use crate::yaml::{self, YamlError};
use lockkeeper_policies::settings::Settings;
use placeholders::Placeholder;
use serde::Serialize;
use serde_json::{Map, Value};

/// The folder of the generated templates in the folder of the chart.
const GENERATED: &str = "templates/generated";

/// The first line of every generated template.
const HEAD: &str = "{{- /* Made by `crdgen chart`: change what it is made from. */}}\n";

/// The only label of the chart that objects also have outside it.
pub(crate) const PART_OF: &str = "app.kubernetes.io/part-of";

/// A file of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The path in the folder of the chart.
    pub path: String,
    /// The text of the file.
    pub text: String,
}

/// An error of generating a file. A test generates all files, so none of these errors happens.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// An object has no YAML form.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// An expression of a rule does not compile.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
}

/// The generated files of the chart, in the order of their paths.
///
/// # Errors
///
/// When a file cannot be generated.
pub fn files() -> Result<Vec<File>, ChartError> {
    let mut out = Vec::new();
    for definition in definitions(&Settings::default())? {
        let plural = &definition.spec.names.plural;
        let object = prepare_object(&definition)?;
        out.push(File {
            path: format!("{GENERATED}/crd-{plural}.yaml"),
            text: template(&[object], ".Values.crds.install")?,
        });
    }
    out.push(File {
        path: format!("{GENERATED}/policies.yaml"),
        text: policies::template()?,
    });
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

/// A template of objects that are installed while `condition` holds, such as `.Values.crds.install`. Each
/// has the labels of the chart. Template syntax in the objects is escaped.
///
/// # Errors
///
/// When an object has no YAML form.
pub fn template<T: Serialize>(objects: &[T], condition: &str) -> Result<String, YamlError> {
    let mut documents = Vec::new();
    for object in objects {
        let mut object = serde_json::to_value(object)?;
        put_labels(&mut object);
        documents.push(placeholders::render(&yaml::document(&object)?));
    }
    let documents = documents.join("---\n");
    Ok(format!(
        "{HEAD}{{{{- if {condition} }}}}\n{documents}{{{{- end }}}}\n"
    ))
}

/// The CRD with placeholders: for the policy on uninstallation, and for the CEL rules.
fn prepare_object(object: &impl Serialize) -> Result<Value, YamlError> {
    let mut object = serde_json::to_value(object)?;
    Placeholder::KeepPolicy.put(&mut object, &["metadata"]);
    rule_gates::gate_schemas(&mut object);
    Ok(object)
}

/// Adds the labels of the chart to those of the object.
fn put_labels(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let labels = metadata.entry("labels");
        let labels = labels.or_insert_with(|| Value::Object(Map::new()));
        if let Some(labels) = labels.as_object_mut() {
            // The labels of the chart include it; a YAML mapping may have a key only once.
            labels.remove(PART_OF);
        }
    }
    Placeholder::Labels.put(object, &["metadata", "labels"]);
}

#[cfg(test)]
mod tests;
