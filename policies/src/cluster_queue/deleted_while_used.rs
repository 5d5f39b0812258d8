#![doc = include_str!("deleted_while_used.md")]

use crate::finding::Findings;
use crate::quota::QueueFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ015",
        name: "cluster-queue-deleted-while-used",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("deleted_while_used.md"),
        check: Check::Delete(check::<T>),
    }
}

fn check<T: QueueFields>(queue: &T, context: &Context<'_>, out: &mut Findings) {
    let local_queues = context
        .cluster
        .tree(T::PROJECT)
        .local_queues(queue.name(), 0);
    let users = match local_queues.total {
        0 => return,
        1 => "1 LocalQueue still uses it".to_owned(),
        total => format!("{total} LocalQueues still use it"),
    };
    out.forbidden(
        FieldPath::new("metadata.name"),
        format!("{users}; delete them first"),
    );
}
