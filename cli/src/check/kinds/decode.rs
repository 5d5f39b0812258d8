//! Objects as their types.

use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::defaulting::Defaults;
use lockkeeper_policies::engine::{ReviewSubject, Verdict, review};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;

/// What rules find, or why they cannot be asked.
pub(super) fn check_rules<T: ValidatedKind>(
    object: &Value,
    context: &Context<'_>,
) -> Result<Verdict, Finding> {
    // Decoding costs a third more if it keeps track of where it is: that is asked for only after an error.
    let mut read: T = decode(object)?;
    // What an API server fills in before it looks is there already when the others look.
    let fills_in = !T::OWN && T::DEFAULTED_ON.is_empty();
    let defaults = if fills_in {
        T::defaults(&read, None, context)
    } else {
        Defaults::default()
    };
    if let Some(filled) = apply_spec_defaults(object, &defaults) {
        read = decode(&filled)?;
    }
    Ok(review(&ReviewSubject::Create(&read), context))
}

fn decode<T: ValidatedKind>(object: &Value) -> Result<T, Finding> {
    T::deserialize(object)
        .or_else(|_| serde_path_to_error::deserialize(object))
        .map_err(|error| Finding::type_mismatch(FieldPath::default(), &error, Some(object)))
}

/// The object with what is filled in for its specification, if anything is.
fn apply_spec_defaults(object: &Value, defaults: &Defaults) -> Option<Value> {
    let items = defaults.items().iter();
    let mut items = items
        .filter(|it| it.pointer.starts_with("/spec/"))
        .peekable();
    items.peek()?;
    let mut object = object.clone();
    for item in items {
        item.apply(&mut object);
    }
    Some(object)
}

pub(super) fn compute_defaults<T: ValidatedKind>(
    object: &Value,
    context: &Context<'_>,
) -> Defaults {
    let object = T::deserialize(object);
    object.map_or_else(
        |_| Defaults::default(),
        |it| T::defaults(&it, None, context),
    )
}
