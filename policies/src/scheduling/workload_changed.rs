#![doc = include_str!("workload_changed.md")]

use super::pod_group_view::{
    HasController, PodGroupView, TEMPLATES_MAX, composite_path, template_path,
};
use super::{immutable_fields, templates};
use crate::finding::{Findings, join_names, quoted};
use crate::rule::{Change, Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::Workload;
use lockkeeper_api::foreign::scheduling::v1beta1::{self, Templates};

/// The rule for `v1alpha2`.
pub(super) const V1ALPHA2: Rule<Workload> = rule(Check::Change(check_v1alpha2));

/// The rule for `v1beta1`.
pub(super) const V1BETA1: Rule<v1beta1::Workload> = rule(Check::Change(check_v1beta1));

const fn rule<T>(check: Check<T>) -> Rule<T> {
    Rule::mirrored(
        "KW003",
        "workload-spec-changed",
        &["kwl-templates-immutable", "kwl-controller-ref-immutable"],
        include_str!("workload_changed.md"),
        check,
    )
}

fn check_v1alpha2(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    controller(change, out);
    let (old, new) = (&change.old.spec, &change.new.spec);
    if old.pod_group_templates != new.pod_group_templates {
        out.invalid(
            FieldPath::new("spec.podGroupTemplates"),
            join_names(new.pod_group_templates.iter().map(|it| it.name.as_str())),
            "field is immutable, with all that is in it; delete the Workload and make a new one",
        );
        templates::check_count(new, out);
    }
}

fn controller<T: HasController>(change: &Change<'_, T>, out: &mut Findings) {
    let (old, new) = (change.old.controller(), change.new.controller());
    if old == new {
        return;
    }
    let kept = match old {
        Some(kept) => format!(
            "field is immutable; keep {} {}",
            quoted(&kept.kind),
            quoted(&kept.name)
        ),
        None => "field is immutable; leave it out".to_owned(),
    };
    let name = new.map(|it| it.name.as_str()).unwrap_or_default();
    out.invalid(FieldPath::new("spec.controllerRef"), name, kept);
}

fn check_v1beta1(
    change: &Change<'_, v1beta1::Workload>,
    context: &Context<'_>,
    out: &mut Findings,
) {
    controller(change, out);
    let (old, new) = (&change.old.spec.templates, &change.new.spec.templates);
    let given = |templates: &Templates| {
        [
            templates.pod_group_templates.is_empty(),
            templates.composite_pod_group_templates.is_empty(),
        ]
    };
    if given(old) != given(new) {
        templates::check_one_of(new, out);
    }
    compare_lists(
        &FieldPath::new("spec"),
        old,
        new,
        &mut |change| match change {
            TemplateDiff::Added(field) => {
                out.forbidden(field, "no template can be added to a Workload");
            }
            TemplateDiff::Removed(field, name) => {
                let name = quoted(name);
                out.forbidden(field, format!("no template can be removed; keep {name}"));
            }
            TemplateDiff::TooMany(field, count) => out.too_many(field, count, TEMPLATES_MAX),
            TemplateDiff::Retained(both) => {
                let [old, new] = &*both;
                immutable_fields::check_policy::<v1beta1::Workload>(old, new, out);
                immutable_fields::check_fields::<v1beta1::Workload>(old, new, context, out);
            }
        },
    );
}

/// The change of a template.
enum TemplateDiff<'a> {
    /// The template was added.
    Added(FieldPath),
    /// The template was removed.
    Removed(FieldPath, &'a str),
    /// The list of the template is too long.
    TooMany(FieldPath, usize),
    /// The template exists in both versions.
    Retained(Box<[PodGroupView<'a>; 2]>),
}

/// Compares the templates in both lists, and those below. For a list with added or removed templates, only these are
/// reported.
fn compare_lists<'a>(
    above: &FieldPath,
    old: &'a Templates,
    new: &'a Templates,
    tell: &mut dyn FnMut(TemplateDiff<'a>),
) {
    let pods = [&old.pod_group_templates, &new.pod_group_templates];
    let field = above.clone().field("podGroupTemplates");
    // Equal lists are the common case, and need neither names nor paths.
    if pods[0] != pods[1] && compare_names(&field, pods.map(|it| names(it, |it| &it.name)), tell) {
        for (at, after) in pods[1].iter().enumerate() {
            if let Some(before) = pods[0].iter().find(|it| it.name == after.name) {
                let place = || template_path(above, at, &after.name);
                let both = [before, after].map(|it| PodGroupView::from_v1beta1(place(), &it.group));
                tell(TemplateDiff::Retained(Box::new(both)));
            }
        }
    }
    let groups = [
        &old.composite_pod_group_templates,
        &new.composite_pod_group_templates,
    ];
    let field = above.clone().field("compositePodGroupTemplates");
    if groups[0] != groups[1]
        && compare_names(&field, groups.map(|it| names(it, |it| &it.name)), tell)
    {
        for (at, after) in groups[1].iter().enumerate() {
            if let Some(before) = groups[0].iter().find(|it| it.name == after.name) {
                let place = composite_path(above, at, &after.name);
                let both =
                    [before, after].map(|it| PodGroupView::from_composite(place.clone(), it));
                tell(TemplateDiff::Retained(Box::new(both)));
                compare_lists(&place, &before.templates, &after.templates, tell);
            }
        }
    }
}

fn names<T>(items: &[T], name: fn(&T) -> &String) -> Vec<&str> {
    items.iter().map(|it| name(it).as_str()).collect()
}

/// Whether both lists have the same names, and not too many.
fn compare_names<'a>(
    field: &FieldPath,
    [old, new]: [Vec<&'a str>; 2],
    tell: &mut dyn FnMut(TemplateDiff<'a>),
) -> bool {
    let mut is_kept = new.len() <= TEMPLATES_MAX;
    if !is_kept {
        tell(TemplateDiff::TooMany(field.clone(), new.len()));
    }
    for (at, name) in new.iter().enumerate() {
        if !old.contains(name) {
            tell(TemplateDiff::Added(field.clone().item(at, name)));
            is_kept = false;
        }
    }
    for name in old {
        if !new.contains(&name) {
            tell(TemplateDiff::Removed(field.clone(), name));
            is_kept = false;
        }
    }
    is_kept
}
