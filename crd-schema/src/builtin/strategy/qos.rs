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
    common(containers.map(|it| of_requirements(it.get("resources").unwrap_or(&Value::Null))))
}

/// The class that all parts have, and `Burstable` if they differ.
fn common(mut classes: impl Iterator<Item = &'static str>) -> &'static str {
    let Some(first) = classes.next() else {
        return "BestEffort";
    };
    if classes.all(|it| it == first) {
        first
    } else {
        "Burstable"
    }
}

fn of_requirements(resources: &Value) -> &'static str {
    let amount = |list: &str, name: &str| -> Quantity {
        let text = resources.get(list).and_then(|it| it.get(name)?.as_str());
        let quantity = text.and_then(|it| it.parse().ok());
        quantity.unwrap_or(Quantity::ZERO)
    };
    common(RESOURCES.into_iter().map(|name| {
        let (request, limit) = (amount("requests", name), amount("limits", name));
        if request != limit {
            "Burstable"
        } else if request.is_zero() {
            "BestEffort"
        } else {
            "Guaranteed"
        }
    }))
}
