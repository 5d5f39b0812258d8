//! The quota that a node lends and the most that it could use: Kueue's arithmetic (`resource_node.go`) without usage.

use super::node::Limits;
use lockkeeper_api::quantity::Quantity;

/// The quota that a node does not lend (Kueue's `localQuota`). `None` on overflow.
fn local_quota(limits: Option<&Limits>, subtree: Quantity) -> Option<Quantity> {
    match limits.and_then(|it| it.lending) {
        None => Some(Quantity::ZERO),
        Some(limit) => Some(subtree.checked_sub(limit)?.max(Quantity::ZERO)),
    }
}

/// The quota that a node lends to its parent. `None` on overflow.
pub(super) fn lent_quota(limits: Option<&Limits>, subtree: Quantity) -> Option<Quantity> {
    subtree.checked_sub(local_quota(limits, subtree)?)
}

/// The most that the last node of a path could use (Kueue's `potentialAvailable`), given the limits and subtree quotas
/// from the root down. `None` on overflow, and for an empty path.
pub(super) fn potential_available<'l>(
    path: impl Iterator<Item = (Option<&'l Limits>, Quantity)>,
) -> Option<Quantity> {
    let mut most = None;
    // From the root down: the quota of a node depends on that of its parent.
    for (limits, subtree) in path {
        let Some(above) = most else {
            most = Some(subtree);
            continue;
        };
        let all = local_quota(limits, subtree)?.checked_add(above)?;
        most = Some(match limits.and_then(|it| it.borrowing) {
            Some(limit) => all.min(subtree.checked_add(limit)?),
            None => all,
        });
    }
    most
}
