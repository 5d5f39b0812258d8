//! Compares `allOf`, `anyOf`, `oneOf` and `not` as far as their effect can be decided.

use super::Effect;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

/// The changed junctors with their effects.
pub(super) fn junctor_changes(
    old: &JSONSchemaProps,
    new: &JSONSchemaProps,
) -> Vec<(&'static str, Effect)> {
    let (old, new) = (without_form(old), without_form(new));
    let of = |it: &Option<Vec<JSONSchemaProps>>| it.clone().unwrap_or_default();
    let lists = [
        ("allOf", effect_of_all(&of(&old.all_of), &of(&new.all_of))),
        ("anyOf", effect_of_any(&of(&old.any_of), &of(&new.any_of))),
        ("oneOf", effect_of_one(&of(&old.one_of), &of(&new.one_of))),
        ("not", effect_of_not(old.not.as_deref(), new.not.as_deref())),
    ];
    let changed = lists.into_iter();
    changed
        .filter(|(_, effect)| *effect != Effect::Same)
        .collect()
}

/// Whether the schema has junctors.
pub(super) fn has_any(schema: &JSONSchemaProps) -> bool {
    let schema = without_form(schema);
    let is_present =
        |it: &Option<Vec<JSONSchemaProps>>| it.as_ref().is_some_and(|it| !it.is_empty());
    is_present(&schema.all_of)
        || is_present(&schema.any_of)
        || is_present(&schema.one_of)
        || schema.not.is_some()
}

/// Removes the junctors of an int-or-string, which repeat its keyword.
fn without_form(schema: &JSONSchemaProps) -> JSONSchemaProps {
    let of = |name: &str| JSONSchemaProps {
        type_: Some(name.to_owned()),
        ..JSONSchemaProps::default()
    };
    let form = Some(vec![of("integer"), of("string")]);
    let mut schema = JSONSchemaProps {
        all_of: schema.all_of.clone(),
        any_of: schema.any_of.clone(),
        one_of: schema.one_of.clone(),
        not: schema.not.clone(),
        x_kubernetes_int_or_string: schema.x_kubernetes_int_or_string,
        ..JSONSchemaProps::default()
    };
    if schema.x_kubernetes_int_or_string == Some(true) {
        if schema.any_of == form {
            schema.any_of = None;
        }
        let branches = schema.all_of.iter_mut().flatten();
        branches
            .filter(|it| it.any_of == form)
            .for_each(|it| it.any_of = None);
        if let Some(branches) = &mut schema.all_of {
            branches.retain(|it| *it != JSONSchemaProps::default());
        }
    }
    schema
}

/// Every branch of `some` is among `all`.
fn is_subset(some: &[JSONSchemaProps], all: &[JSONSchemaProps]) -> bool {
    some.iter().all(|it| all.contains(it))
}

fn effect_of_all(old: &[JSONSchemaProps], new: &[JSONSchemaProps]) -> Effect {
    match (is_subset(new, old), is_subset(old, new)) {
        (true, true) => Effect::Same,
        (true, false) => Effect::Wider,
        (false, true) => Effect::Narrower,
        (false, false) => Effect::Unclear,
    }
}

fn effect_of_any(old: &[JSONSchemaProps], new: &[JSONSchemaProps]) -> Effect {
    match (old.is_empty(), new.is_empty()) {
        (true, true) => Effect::Same,
        // An empty `anyOf` accepts every value.
        (true, false) => Effect::Narrower,
        (false, true) => Effect::Wider,
        // More branches accept more values, unlike allOf.
        (false, false) => effect_of_all(new, old),
    }
}

fn effect_of_one(old: &[JSONSchemaProps], new: &[JSONSchemaProps]) -> Effect {
    let is_same = old.len() == new.len() && is_subset(old, new) && is_subset(new, old);
    match (old.is_empty(), new.is_empty()) {
        _ if is_same => Effect::Same,
        (true, _) => Effect::Narrower,
        (_, true) => Effect::Wider,
        // A new branch may make a value match two branches, which `oneOf` rejects.
        _ => Effect::Unclear,
    }
}

fn effect_of_not(old: Option<&JSONSchemaProps>, new: Option<&JSONSchemaProps>) -> Effect {
    match (old, new) {
        (None, Some(_)) => Effect::Narrower,
        (Some(_), None) => Effect::Wider,
        (Some(old), Some(new)) if old != new => Effect::Unclear,
        _ => Effect::Same,
    }
}
