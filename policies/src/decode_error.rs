//! Rule SC001: values that do not fit the type of their field. The decoder finds them.

use crate::rule_info::{Layer, Operation, RuleInfo};
use lockkeeper_api::config::Action;
pub use lockkeeper_crd_schema::decode_error::reason;
pub use lockkeeper_crd_schema::rule_ids::UNDECODABLE as ID;
use lockkeeper_crd_schema::rule_ids::UNDECODABLE;

pub(crate) fn info() -> RuleInfo {
    RuleInfo {
        id: UNDECODABLE,
        name: "undecodable-value",
        group: "*".to_owned(),
        kind: "*".to_owned(),
        since: "0.1.0",
        action: Action::Enforce,
        covers: &["mutating-decode-error"],
        layers: &[Layer::Webhook],
        operations: &[Operation::Create, Operation::Update],
        ratchets: true,
        doc: include_str!("decode_error.md"),
    }
}
