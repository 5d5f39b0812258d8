//! The class of quality of service of a pod, as `pkg/apis/core/helper/qos`.

use crate::builtin::fields::is_empty;
use lockkeeper_api::quantity::Quantity;
use serde_json::Value;

/// The resources that decide.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// The class of a pod.
pub(super) fn class(spec: &Value) -> &'static str {
    if let Some(resources) = spec.get("resources")
        && !(is_empty(resources, "limits") && is_empty(resources, "requests"))
    {
        return of_requirements(resources);
    }
    let containers = ["initContainers", "containers"].iter();
    let containers = containers
        .filter_map(|key| spec.get(key)?.as_array())
        .flatten();
    let mut classes: Vec<&'static str> = containers
        .map(|it| of_requirements(it.get("resources").unwrap_or(&Value::Null)))
        .collect();
    classes.dedup();
    match classes.as_slice() {
        [] => "BestEffort",
        [class] => class,
        _ => "Burstable",
    }
}

fn of_requirements(resources: &Value) -> &'static str {
    let amount = |list: &str, name: &str| -> Option<Quantity> {
        let text = resources.get(list)?.get(name)?.as_str()?;
        let quantity: Quantity = text.parse().ok()?;
        (!quantity.is_zero() && !quantity.is_negative()).then_some(quantity)
    };
    let pairs = RESOURCES.map(|name| (amount("requests", name), amount("limits", name)));
    if pairs.iter().all(|it| *it == (None, None)) {
        "BestEffort"
    } else if pairs
        .iter()
        .all(|(request, limit)| limit.is_some() && (request.is_none() || request == limit))
    {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
