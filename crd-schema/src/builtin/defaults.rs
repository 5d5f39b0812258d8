//! Defaults of built-in kinds.
//!
//! Source: `k8s.io/kubernetes` v1.37, `pkg/apis/*/*/defaults.go` and `zz_generated.defaults.go`. As there, a struct gets
//! its defaults before the structs in it.

mod constants;
mod pods;
mod quantities;
mod services;
mod workloads;

use super::table::{Table, TypeId, ValueType};
use constants::{CONSTANTS, Constant};
use serde_json::{Map, Value};

/// Sets the defaults of an object that was decoded. Idempotent.
pub(super) fn apply(table: &Table, of: TypeId, object: &mut Value) {
    let Value::Object(fields) = object else {
        return;
    };
    set_computed(table.type_name(of), fields);
    set_constants(table, of, fields);
    for (name, value) in fields {
        if let Some(field) = table.field(of, name) {
            apply_below(table, &field.value_type, value);
        }
    }
}

fn apply_below(table: &Table, of: &ValueType, value: &mut Value) {
    match (of, value) {
        (ValueType::Struct(id), value) => apply(table, *id, value),
        (ValueType::Pointer(of), value) => apply_below(table, of, value),
        (ValueType::List(of), Value::Array(items)) => {
            for item in items {
                apply_below(table, of, item);
            }
        }
        (ValueType::Map(of), Value::Object(fields)) => {
            for (_, item) in fields {
                if **of == ValueType::Quantity {
                    quantities::round_up_to_milli(item);
                } else {
                    apply_below(table, of, item);
                }
            }
        }
        _ => {}
    }
}

fn set_constants(table: &Table, of: TypeId, fields: &mut Map<String, Value>) {
    let name = table.type_name(of);
    let Ok(at) = CONSTANTS.binary_search_by_key(&name, |it| it.0) else {
        return;
    };
    let constants = CONSTANTS.get(at).map_or(&[][..], |it| it.1);
    for (field, constant) in constants {
        let is_pointer = table.field(of, field).is_some_and(|it| it.is_pointer);
        let is_set = fields.get(*field).is_some_and(|it| match it {
            Value::Null => false,
            Value::String(text) => is_pointer || !text.is_empty(),
            _ => true,
        });
        if !is_set {
            fields.insert((*field).to_owned(), constant.value());
        }
    }
}

impl Constant {
    fn value(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Number(number) => number.into(),
            Self::Flag(flag) => flag.into(),
            Self::Empty => Value::Object(Map::new()),
        }
    }
}

/// Defaults that depend on other fields.
fn set_computed(type_name: &str, fields: &mut Map<String, Value>) {
    match type_name {
        "core/v1.Pod" => pods::pod(fields),
        "core/v1.PodSpec" => pods::pod_spec(fields),
        "core/v1.Container" | "core/v1.EphemeralContainer" => pods::container(fields),
        "core/v1.Volume" => pods::volume(fields),
        "core/v1.Service" => services::service(fields),
        "core/v1.Namespace" => services::namespace(fields),
        "networking/v1.NetworkPolicy" => services::network_policy(fields),
        "rbac/v1.Subject" => services::subject(fields),
        "apps/v1.Deployment" => workloads::deployment(fields),
        "apps/v1.DaemonSet" => workloads::daemon_set(fields),
        "apps/v1.StatefulSet" => workloads::stateful_set(fields),
        "batch/v1.Job" => workloads::job(fields),
        "autoscaling/v2.HorizontalPodAutoscaler" => workloads::autoscaler(fields),
        _ => {}
    }
}
