//! What of the Helm chart is derived: the templates of the definitions, of the admission policies and of the webhook
//! configurations, and the values with their schema. The rest of `charts/lockkeeper` is written by hand.
//!
//! Nothing is said twice: the templates come from the objects that [`crate::cli`] emits, with `holes` that Helm
//! fills in; `values.yaml` and `values.schema.json` come from one type, [`values::Values`].

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

/// The folder of the generated templates in that of the chart.
const GENERATED: &str = "templates/generated";

/// What every generated template begins with.
const HEAD: &str = "{{- /* Made by `crdgen chart`: change what it is made from. */}}\n";

/// The label of the chart that objects may have without it.
const PART_OF: &str = "app.kubernetes.io/part-of";

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
        documents.push(placeholders::render(&yaml::document(&object)?));
    }
    let documents = documents.join("---\n");
    Ok(format!(
        "{HEAD}{{{{- if {condition} }}}}\n{documents}{{{{- end }}}}\n"
    ))
}

/// The object, which an uninstallation leaves if the user wants that, with expressions of rules as they are declared.
fn prepare_object(object: &impl Serialize) -> Result<Value, YamlError> {
    let mut object = serde_json::to_value(object)?;
    Placeholder::KeepPolicy.put(&mut object, &["metadata"]);
    rule_gates::gate_schemas(&mut object);
    Ok(object)
}

/// Adds the labels of the chart to those of the object, in place of what the object has of them.
fn put_labels(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let labels = metadata.entry("labels");
        let labels = labels.or_insert_with(|| Value::Object(Map::new()));
        if let Some(labels) = labels.as_object_mut() {
            labels.remove(PART_OF);
        }
    }
    Placeholder::Labels.put(object, &["metadata", "labels"]);
}

#[cfg(test)]
mod tests;
