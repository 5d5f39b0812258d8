//! User rules: compilation, and the operations that need a registration.

use anyhow::Error;
use lockkeeper_crdgen::user_rule_dirs;
pub(crate) use lockkeeper_crdgen::user_rule_dirs::RuleDirs;
use lockkeeper_policies::registry::Registration;
use lockkeeper_policies::rule::Operation;
use lockkeeper_policies::user_rules::{KindName, Source, UserRules};
use std::sync::Arc;

/// Compiles pages. The error has a line for each invalid page.
pub(crate) fn compile(pages: &[Source]) -> Result<Arc<UserRules>, Error> {
    Ok(user_rule_dirs::compile(pages)?)
}

/// The kinds and operations of these rules that are not `registered`. The API server sends them only if the webhook
/// configurations were generated with these rules.
pub(crate) fn unregistered_operations(
    rules: &UserRules,
    registered: &[Registration],
) -> Vec<String> {
    let is_sent = |kind: KindName<'_>, operation: &Operation| {
        registered.iter().any(|entry| {
            let is_version = kind.version == "*" || entry.version == kind.version;
            let is_kind = entry.kind == kind.kind && entry.group == kind.group && is_version;
            is_kind && entry.validated_on.contains(operation)
        })
    };
    let mut out = Vec::new();
    for rule in rules.iter() {
        for kind in &rule.kinds {
            let name = KindName {
                group: &kind.group,
                version: &kind.version,
                kind: &kind.kind,
            };
            let operations = rule.operations.iter();
            let missing: Vec<&str> = operations
                .filter(|it| !is_sent(name, it))
                .map(|it| it.as_str())
                .collect();
            if !missing.is_empty() {
                out.push(format!("{}: {} of {kind}", rule.id, missing.join(", ")));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_policies::registry;
    use lockkeeper_policies::settings::Settings;
    use std::collections::BTreeSet;

    const PAGE: &str = "---\nid: TEAM001\nname: a\nkinds: [{version: v1, kind: Pod}, {version: v1, kind: Node}]\noperations: [CREATE, DELETE]\nvalidations: [{expression: 'true'}]\n---\n";

    #[test]
    fn unregistered_operations_are_named() {
        let source = Source {
            name: "a.md".to_owned(),
            text: PAGE.to_owned(),
        };
        let rules = compile(&[source]).unwrap();
        assert_eq!(
            unregistered_operations(
                &rules,
                &registry::built_in(&BTreeSet::new(), &Settings::default())
            ),
            [
                "TEAM001: DELETE of v1 Pod",
                "TEAM001: CREATE, DELETE of v1 Node"
            ]
        );
    }
}
