//! The rule reference: `docs/rules/` and `lockkeeper rules`.

use crate::registry;
pub use crate::registry::unknown_rule_message;
use crate::rule::RuleInfo;
use lockkeeper_api::config::Action;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A rule with its kinds.
#[derive(Clone, Debug)]
pub struct RuleEntry {
    /// The rule as declared for the first kind.
    pub rule: RuleInfo,
    /// The kinds, each with the default action.
    pub kinds: Vec<RuleKind>,
}

/// A kind of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleKind {
    /// The API group; empty for the core group, `*` for any.
    pub group: String,
    /// The kind; `*` for any.
    pub kind: String,
    /// The default action as the configuration spells it.
    pub action: &'static str,
}

impl RuleKind {
    fn from_rule(rule: &RuleInfo) -> Self {
        Self {
            group: rule.group.clone(),
            kind: rule.kind.clone(),
            action: action_name(rule.action),
        }
    }

    /// The kind for headings: `ClusterQueue.kueue.x-k8s.io`, or `any kind`.
    #[must_use]
    pub fn title(&self) -> String {
        match (self.kind.as_str(), self.group.as_str()) {
            ("*", _) => "any kind".to_owned(),
            (kind, "") => kind.to_owned(),
            (kind, group) => format!("{kind}.{group}"),
        }
    }
}

/// The configuration value of an action.
#[must_use]
pub const fn action_name(action: Action) -> &'static str {
    match action {
        Action::Enforce => "enforce",
        Action::Warn => "warn",
        Action::Audit => "audit",
        Action::Off => "off",
    }
}

/// All rules by id.
#[must_use]
pub fn entries() -> Vec<RuleEntry> {
    let mut by_id: BTreeMap<&'static str, RuleEntry> = BTreeMap::new();
    for rule in registry::all() {
        let kind = RuleKind::from_rule(&rule);
        let entry = by_id.entry(rule.id).or_insert_with(|| RuleEntry {
            rule,
            kinds: Vec::new(),
        });
        // Several versions of a kind are listed as one.
        if !entry.kinds.contains(&kind) {
            entry.kinds.push(kind);
        }
    }
    by_id.into_values().collect()
}

/// The rule with this id, case-insensitive.
#[must_use]
pub fn entry(id: &str) -> Option<RuleEntry> {
    let mut all = entries().into_iter();
    all.find(|it| it.rule.id.eq_ignore_ascii_case(id))
}

/// The file name of a rule's page in `docs/rules/`.
#[must_use]
pub fn file_name(rule: &RuleInfo) -> String {
    format!("{}-{}.md", rule.id, rule.name)
}

/// The index of all pages, by kind.
#[must_use]
pub fn index() -> String {
    let mut by_kind: BTreeMap<(bool, String), Vec<(RuleEntry, &'static str)>> = BTreeMap::new();
    for entry in entries() {
        for kind in &entry.kinds {
            // Our own kinds first.
            let key = (kind.group != lockkeeper_api::GROUP, kind.title());
            let rules = by_kind.entry(key).or_default();
            rules.push((entry.clone(), kind.action));
        }
    }
    let mut out = String::from(HEAD);
    for ((_, title), rules) in by_kind {
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "\n## {title}\n\n| rule | by default | on |\n| --- | --- | --- |\n"
        );
        for (entry, action) in rules {
            let rule = &entry.rule;
            let operations: Vec<&str> = rule.operations.iter().map(|it| it.as_str()).collect();
            let _ = writeln!(
                out,
                "| [{} {}]({}) | {action} | {} |",
                rule.id,
                rule.name,
                file_name(rule),
                operations.join(", ")
            );
        }
    }
    out
}

const HEAD: &str = "\
# Rules

Each rule has a page with its purpose and with examples of rejected and accepted objects; the examples run as tests.
`lockkeeper rules` prints this list and `lockkeeper rules ID` prints a page. The action for findings is set under
`rules.actions` in the [configuration](../configuration.md). For kinds of other projects, a rule that the project's own
webhook enforces is off by default, and other rules warn. Findings that depend on objects which may be created later go
to the audit log (`audit`); `lockkeeper check`, which reads all objects together, warns about them.

[not-covered.md](not-covered.md) lists the rules of Kueue, Kubernetes and Koordinator that lockkeeper does not have, and
the reasons.
";
