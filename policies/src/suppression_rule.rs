//! Rule SC006: suppressions without effect.

use crate::rule_info::{Layer, Operation, RuleInfo};
use lockkeeper_api::config::Action;

/// The id of findings about suppressions.
pub const ID: &str = "SC006";

/// The default action.
pub const ACTION: Action = Action::Warn;

pub(crate) fn info() -> RuleInfo {
    RuleInfo {
        id: ID,
        name: "suppression-without-effect",
        group: "*".to_owned(),
        kind: "*".to_owned(),
        since: "0.1.0",
        action: ACTION,
        covers: &[],
        layers: &[Layer::Check],
        operations: &[Operation::Create],
        ratchets: true,
        doc: include_str!("suppression.md"),
    }
}
