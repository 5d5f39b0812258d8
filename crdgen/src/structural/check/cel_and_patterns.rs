//! Checks that patterns and CEL rules compile, and that only nodes which the API server can
//! correlate with the stored object have transition rules.

use super::findings::FindingCollector;
use crate::structural::uses_old_self;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::ErrorKind;
use lockkeeper_policies::schema::StructuralSchema;
use serde_json::json;

pub(super) fn check(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    check_node(schema, None, at, found);
}

/// `lost` is the outermost list above whose items cannot be correlated with the stored ones.
fn check_node(
    schema: &JSONSchemaProps,
    lost: Option<&FieldPath>,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    check_pattern(schema, at, found);
    check_expressions(schema, lost, at, found);
    for (name, branches) in [
        ("allOf", &schema.all_of),
        ("anyOf", &schema.any_of),
        ("oneOf", &schema.one_of),
    ] {
        for (index, branch) in branches.iter().flatten().enumerate() {
            check_node(branch, lost, &at.clone().field(name).index(index), found);
        }
    }
    if let Some(not) = &schema.not {
        check_node(not, lost, &at.clone().field("not"), found);
    }
    for (name, child) in schema.properties.iter().flatten() {
        let at = at.clone().field("properties").key(name.as_str());
        check_node(child, lost, &at, found);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(child)) = &schema.additional_properties {
        check_node(
            child,
            lost,
            &at.clone().field("additionalProperties"),
            found,
        );
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        // Only the items of a keyed list can be found in the stored object.
        let is_keyed = schema.x_kubernetes_list_type.as_deref() == Some("map");
        let lost = lost.or((!is_keyed).then_some(at));
        check_node(items, lost, &at.clone().field("items"), found);
    }
}

fn check_pattern(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    let Some(pattern) = &schema.pattern else {
        return;
    };
    if StructuralSchema::new(&json!({"type": "string", "pattern": pattern})).is_err() {
        let detail = "must be a valid regular expression";
        found.invalid(at.clone().field("pattern"), pattern, detail);
    }
}

fn check_expressions(
    schema: &JSONSchemaProps,
    lost: Option<&FieldPath>,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    for (index, rule) in schema.x_kubernetes_validations.iter().flatten().enumerate() {
        let at = at.clone().field("x-kubernetes-validations").index(index);
        // One rule per schema, so that an error belongs to this rule.
        let alone = JSONSchemaProps {
            x_kubernetes_validations: Some(vec![rule.clone()]),
            ..schema.clone()
        };
        if let Err(error) = StructuralSchema::new(&json!(alone)) {
            // The other lines repeat the expression with a caret below it.
            let problem = error.problem.lines().next().unwrap_or_default().to_owned();
            found.invalid(at.field("rule"), &rule.rule, problem);
            continue;
        }
        let looks_back = uses_old_self(&rule.rule);
        if looks_back && let Some(lost) = lost {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}"
            );
            found.invalid(at.field("rule"), &rule.rule, detail);
        } else if !looks_back && rule.optional_old_self.is_some() {
            let detail = "may not be set if oldSelf is not used in rule";
            found.report(
                at.field("optionalOldSelf"),
                ErrorKind::Invalid,
                None,
                detail,
            );
        }
    }
}
