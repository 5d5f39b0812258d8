//! CEL conditions that a change of a job adds no pods. The declared expressions run on the job before and after the change: `self` is
//! bound by a macro, which a declaration may not use for other variables.

use super::cel_fields::{has_field, select};
use lockkeeper_job_kinds::{JobPath, PodCount, PodSetName, PodSets};

/// The variables of the declared expressions.
const SELF: &str = "self";
const ITEM: &str = "item";
const KEY: &str = "key";

/// The CEL condition that each pod set of `object` has no more pods than in `oldObject`, of the same template.
pub(super) fn adds_no_pods(pod_sets: &PodSets) -> String {
    format!(
        "[[dyn(object), dyn(oldObject)].map({SELF}, {})].all(jobs, jobs[0].all(after, after[1] <= 0 \
         || jobs[1].exists(before, after[0] == before[0] && after[1] <= before[1] && after[2] == before[2])))",
        entries(pod_sets)
    )
}

/// The path of the pods, for messages.
pub(super) const fn path(pod_sets: &PodSets) -> &JobPath {
    match &pod_sets.for_each {
        Some(path) => path,
        None => &pod_sets.pods.path,
    }
}

/// A list with the name, the number and the template of each pod set.
fn entries(pod_sets: &PodSets) -> String {
    let Some(list) = &pod_sets.for_each else {
        return format!("[{}]", entry(pod_sets, SELF, "''"));
    };
    let fields: Vec<&str> = list.fields().collect();
    let all = select(SELF, &fields);
    let of_map = format!(
        "{all}.map({KEY}, [{all}[{KEY}]].map({ITEM}, {})[0])",
        entry(pod_sets, ITEM, KEY)
    );
    let name = optional(ITEM, &["name"]);
    // The items of a list have no key.
    let of_list = format!(
        "{all}.map({ITEM}, [dyn(null)].map({KEY}, {})[0])",
        entry(pod_sets, ITEM, &name)
    );
    format!(
        "({} ? (type({all}) == map ? {of_map} : {of_list}) : [])",
        has_field(SELF, &fields)
    )
}

/// One pod set: the job itself (`of` is `self`), or an item.
fn entry(pod_sets: &PodSets, of: &str, name_of_item: &str) -> String {
    let pods: Vec<&str> = pod_sets.pods.path.fields().collect();
    let condition = match &pod_sets.condition {
        Some(condition) => embedded(condition.text()),
        None => has_field(of, &pods),
    };
    let name = match &pod_sets.name {
        // The name is the same before and after.
        PodSetName::Fixed(_) => "''".to_owned(),
        PodSetName::Expression(name) => embedded(name.text()),
        PodSetName::OfItem => name_of_item.to_owned(),
    };
    let count = match &pod_sets.count {
        PodCount::One => "1".to_owned(),
        PodCount::Expression(count) => embedded(count.text()),
        PodCount::Field(path) => {
            let fields: Vec<&str> = path.fields().collect();
            format!("({} ? {} : 1)", has_field(of, &fields), select(of, &fields))
        }
    };
    let template = match &pod_sets.pods.requests {
        None => optional(of, &pods),
        Some(requests) => {
            let placement = ["nodeSelector", "tolerations"].map(|field| {
                let fields: Vec<&str> = pods.iter().copied().chain([field]).collect();
                optional(of, &fields)
            });
            let requests = requests
                .iter()
                .map(|(_, request)| format!("dyn({})", embedded(request.text())));
            let all: Vec<String> = placement.into_iter().chain(requests).collect();
            format!("[{}]", all.join(", "))
        }
    };
    format!(
        "({condition} ? [dyn({name}), dyn({count}), dyn({template})] : [dyn(''), dyn(0), dyn(null)])"
    )
}

/// The value of a field, or null.
fn optional(of: &str, fields: &[&str]) -> String {
    format!(
        "({} ? dyn({}) : dyn(null))",
        has_field(of, fields),
        select(of, fields)
    )
}

/// A declared expression as a part of another one. A comment at its end would continue.
fn embedded(text: &str) -> String {
    let end = if text.contains("//") { "\n" } else { "" };
    format!("({text}{end})")
}

#[cfg(test)]
mod tests;
