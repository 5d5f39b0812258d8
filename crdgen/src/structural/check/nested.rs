//! Checks of `allOf`, `anyOf`, `oneOf` and `not`: a branch may only restrict values, and may not
//! have keywords of the structural part.

use super::findings::FindingCollector;
use super::unsupported::check_unsupported;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use lockkeeper_api::field_path::FieldPath;

/// Checks the junctors of a node.
pub(super) fn check_junctors(
    schema: &JSONSchemaProps,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    // An int-or-string may name its two types in `anyOf`, or in the first branch of `allOf`.
    let skips_any_of = is_int_or_string(schema.any_of.as_deref());
    let first = schema.all_of.iter().flatten().next();
    let skips_first = first.is_some_and(|it| is_int_or_string(it.any_of.as_deref()));
    check_branches(schema, skips_any_of, skips_first, at, found);
}

/// Whether the branches are the two types of an int-or-string.
fn is_int_or_string(branches: Option<&[JSONSchemaProps]>) -> bool {
    let of = |name: &str| JSONSchemaProps {
        type_: Some(name.to_owned()),
        ..JSONSchemaProps::default()
    };
    branches.is_some_and(|it| *it == [of("integer"), of("string")])
}

fn check_branches(
    schema: &JSONSchemaProps,
    skips_any_of: bool,
    skips_first: bool,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    let lists = [
        ("anyOf", &schema.any_of, skips_any_of),
        ("allOf", &schema.all_of, false),
        ("oneOf", &schema.one_of, false),
    ];
    for (name, branches, is_skipped) in lists {
        for (index, branch) in branches
            .iter()
            .flatten()
            .enumerate()
            .filter(|_| !is_skipped)
        {
            let skips = name == "allOf" && index == 0 && skips_first;
            check_branch(branch, skips, &at.clone().field(name).index(index), found);
        }
    }
    if let Some(not) = &schema.not {
        check_branch(not, false, &at.clone().field("not"), found);
    }
}

fn check_branch(
    branch: &JSONSchemaProps,
    skips_any_of: bool,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    check_unsupported(branch, at, found);
    check_branches(branch, skips_any_of, false, at, found);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &branch.items {
        check_branch(items, false, &at.clone().field("items"), found);
    }
    for (name, child) in branch.properties.iter().flatten() {
        let at = at.clone().field("properties").key(name.as_str());
        check_branch(child, false, &at, found);
        if name == "metadata" {
            found.forbidden(at, "must not be specified in a nested context");
        }
    }
    for (_, name, detail) in structural_keywords(branch)
        .into_iter()
        .filter(|(is_present, _, _)| *is_present)
    {
        found.forbidden(at.clone().field(name), detail);
    }
}

/// The keywords of the structural part, and whether this branch has each of them.
fn structural_keywords(branch: &JSONSchemaProps) -> [(bool, &'static str, &'static str); 13] {
    const EMPTY: &str = "must be empty to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    const FALSE: &str = "must be false to be structural";
    let is = |it: Option<bool>| it == Some(true);
    let has = |it: &Option<String>| it.as_ref().is_some_and(|it| !it.is_empty());
    let additional = branch.additional_properties.as_ref();
    [
        (has(&branch.type_), "type", EMPTY),
        (
            additional.is_some_and(|it| *it != JSONSchemaPropsOrBool::Bool(false)),
            "additionalProperties",
            UNDEFINED,
        ),
        (branch.default.is_some(), "default", UNDEFINED),
        (has(&branch.title), "title", EMPTY),
        (has(&branch.description), "description", EMPTY),
        (is(branch.nullable), "nullable", FALSE),
        (
            is(branch.x_kubernetes_preserve_unknown_fields),
            "x-kubernetes-preserve-unknown-fields",
            FALSE,
        ),
        (
            is(branch.x_kubernetes_embedded_resource),
            "x-kubernetes-embedded-resource",
            FALSE,
        ),
        (
            is(branch.x_kubernetes_int_or_string),
            "x-kubernetes-int-or-string",
            FALSE,
        ),
        (
            branch
                .x_kubernetes_list_map_keys
                .as_ref()
                .is_some_and(|it| !it.is_empty()),
            "x-kubernetes-list-map-keys",
            EMPTY,
        ),
        (
            branch.x_kubernetes_list_type.is_some(),
            "x-kubernetes-list-type",
            UNDEFINED,
        ),
        (
            branch.x_kubernetes_map_type.is_some(),
            "x-kubernetes-map-type",
            UNDEFINED,
        ),
        (
            branch
                .x_kubernetes_validations
                .as_ref()
                .is_some_and(|it| !it.is_empty()),
            "x-kubernetes-validations",
            EMPTY,
        ),
    ]
}

/// Checks that the structural part has each field that a branch at the root names. The API server
/// does not check junctors further down.
pub(super) fn check_complete(
    schema: &JSONSchemaProps,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    check_branch_fields(schema, Some(schema), at, at, found);
}

fn check_branch_fields(
    of: &JSONSchemaProps,
    structural: Option<&JSONSchemaProps>,
    at: &FieldPath,
    from: &FieldPath,
    found: &mut FindingCollector,
) {
    let lists = [
        ("allOf", &of.all_of),
        ("anyOf", &of.any_of),
        ("oneOf", &of.one_of),
    ];
    for (name, branches) in lists {
        for (index, branch) in branches.iter().flatten().enumerate() {
            let from = from.clone().field(name).index(index);
            check_field_known(branch, structural, at, &from, found);
        }
    }
    if let Some(not) = &of.not {
        check_field_known(not, structural, at, &from.clone().field("not"), found);
    }
}

fn check_field_known(
    branch: &JSONSchemaProps,
    structural: Option<&JSONSchemaProps>,
    at: &FieldPath,
    from: &FieldPath,
    found: &mut FindingCollector,
) {
    // One finding for the topmost missing field, and none for the fields below it.
    let Some(structural) = structural else {
        found.required(at.clone(), format!("because it is defined in {from}"));
        return;
    };
    check_branch_fields(branch, Some(structural), at, from, found);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &branch.items {
        let known = match &structural.items {
            Some(JSONSchemaPropsOrArray::Schema(items)) => Some(&**items),
            _ => None,
        };
        let (at, from) = (at.clone().field("items"), from.clone().field("items"));
        check_field_known(items, known, &at, &from, found);
    }
    for (name, child) in branch.properties.iter().flatten() {
        let known = structural.properties.as_ref().and_then(|it| it.get(name));
        let at = at.clone().field("properties").key(name.as_str());
        let from = from.clone().field("properties").key(name.as_str());
        check_field_known(child, known, &at, &from, found);
    }
}
