#![doc = include_str!("nodes_counted_twice.md")]

use crate::cohort_trees::{NodeKind, Tree};
use crate::finding::{Findings, quoted};
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::quota::FlavorQuotas;

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ016",
        name: "nodes-counted-twice",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("nodes_counted_twice.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    let tree = context.cluster.tree(T::PROJECT);
    // Admission checks may distinguish flavors that have the same nodes.
    if object.has_checks() || tree.is_ambiguous() {
        return;
    }
    let own: Vec<&FlavorQuotas> = object.groups().iter().flat_map(|it| &it.flavors).collect();
    quota::visit_flavors(object.groups(), out, |flavor, path, out| {
        let both = tree.same_node_flavors(&flavor.name).find_map(|other| {
            let resource = counted_resource(flavor, |resource| {
                own.iter().any(|candidate| {
                    candidate.name == other
                        && counted_resource(candidate, |name| name == resource).is_some()
                }) || is_counted_elsewhere(tree, other, resource, (T::NODE, object.name()))
            })?;
            Some((other, resource))
        });
        if let Some((other, resource)) = both {
            let (other, resource) = (quoted(other), quoted(resource));
            out.invalid(
                path(),
                &flavor.name,
                format!(
                    "has the same nodes as {other}, and both have quota of {resource}; use one of the two, or \
                     give each nodes of its own"
                ),
            );
        }
    });
}

/// The first resource of which a flavor has quota and for which `holds` returns true.
fn counted_resource(flavor: &FlavorQuotas, holds: impl Fn(&str) -> bool) -> Option<&str> {
    let counted = flavor
        .resources
        .iter()
        .filter(|it| !it.nominal_quota.is_zero());
    let mut names = counted.map(|it| it.name.as_str());
    names.find(|name| holds(name))
}

/// Whether another node than `except` has quota of a resource of this flavor, and no admission checks.
fn is_counted_elsewhere(
    tree: &Tree,
    flavor: &str,
    resource: &str,
    except: (NodeKind, &str),
) -> bool {
    tree.users(flavor).any(|((kind, name), facts)| {
        let nominal = facts.quotas.get((flavor, resource)).map(|it| it.nominal);
        (*kind, name.as_str()) != except
            && !facts.has_checks
            && nominal.is_some_and(|it| !it.is_zero())
    })
}
