//! Rules of Koordinator's ElasticQuotas.

mod amounts;
mod bad_shared_weight;
mod child_max_above_parent;
mod children_min_above_parent;
mod defaults;
mod deleted_while_used;
mod is_parent_changed;
mod max_below_used;
mod max_resources_differ;
mod min_above_max;
mod min_not_guaranteed;
mod min_resources_missing;
mod name_taken;
mod namespace_bound_twice;
mod negative_amount;
mod parent_missing;
mod quota_cycle;
mod reserved;
mod tree;
mod tree_id_changed;
mod tree_id_differs;
mod unknown;

use crate::defaulting::Defaults;
use crate::labels::{misplaced_key, misspelt_key};
use crate::rule::{Context, Operation, Rule};
use crate::validated_kind::{ValidatedKind, WebhookScope, implement_type_mismatch};
use lockkeeper_api::config::Action;
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, IS_PARENT, NAMESPACES, PARENT, TREE_ID};

static RULES: &[Rule<ElasticQuota>] = &[
    negative_amount::RULE,
    bad_shared_weight::RULE,
    min_above_max::RULE,
    max_below_used::RULE,
    name_taken::RULE,
    namespace_bound_twice::RULE,
    reserved::CHANGED,
    reserved::DELETED,
    unknown::CHANGED,
    unknown::DELETED,
    is_parent_changed::RULE,
    tree_id_changed::RULE,
    tree_id_differs::RULE,
    parent_missing::RULE,
    max_resources_differ::RULE,
    min_resources_missing::RULE,
    children_min_above_parent::RULE,
    min_not_guaranteed::RULE,
    deleted_while_used::BY_QUOTAS,
    deleted_while_used::BY_PODS,
    quota_cycle::RULE,
    child_max_above_parent::RULE,
    misspelt_key::rule(Action::Warn),
    misplaced_key::rule(Action::Warn),
];

impl ValidatedKind for ElasticQuota {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Foreign(ForeignKinds::Koordinator);
    const DEFAULTED_ON: &'static [Operation] = &[Operation::Create];

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    /// As in Koordinator (`quotaFieldsCopy`): its controllers write the other annotations and the
    /// status continuously.
    fn is_unchanged(old: &Self, new: &Self) -> bool {
        let labels = [PARENT, IS_PARENT, TREE_ID];
        labels.iter().all(|key| old.label(key) == new.label(key))
            && old.annotation(NAMESPACES) == new.annotation(NAMESPACES)
            && old.spec == new.spec
    }

    fn defaults(object: &Self, old: Option<&Self>, context: &Context<'_>) -> Defaults {
        match old {
            None => defaults::defaults(object, context.cluster),
            Some(_) => Defaults::default(),
        }
    }
}
