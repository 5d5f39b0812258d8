//! How the pods of a group are scheduled.
#![doc = include_str!("template_scheduling_policy.md")]
#![doc = include_str!("pod_group_scheduling_policy.md")]

use super::group::Grouped;
use crate::finding::Findings;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};

const COVERS: &[&str] = &["pg-scheduling-policy-one-of", "pg-gang-min-count"];

pub(super) const WORKLOAD: Rule<Workload> = Rule::mirrored(
    "KW006",
    "template-scheduling-policy-malformed",
    COVERS,
    include_str!("template_scheduling_policy.md"),
    Check::Create(check::<Workload>),
);

pub(super) const POD_GROUP: Rule<PodGroup> = Rule::mirrored(
    "PG006",
    "pod-group-scheduling-policy-malformed",
    COVERS,
    include_str!("pod_group_scheduling_policy.md"),
    Check::Create(check::<PodGroup>),
);

fn check<T: Grouped>(object: &T, _: &Context<'_>, out: &mut Findings) {
    for (path, group) in object.groups() {
        let policy = &group.scheduling_policy;
        let field = path.field("schedulingPolicy");
        match (&policy.basic, &policy.gang) {
            (None, None) => out.invalid(field.clone(), "", "give one of basic and gang"),
            (Some(_), Some(_)) => {
                let detail = "give only one of them";
                out.invalid(field.clone(), "basic, gang", detail);
            }
            _ => {}
        }
        let Some(gang) = &policy.gang else { continue };
        let field = field.field("gang.minCount");
        match gang.min_count {
            0 => out.required(
                field,
                "say how many pods must find a place at once, at least 1",
            ),
            1.. => {}
            below => out.invalid(field, below, "must be at least 1"),
        }
    }
}
