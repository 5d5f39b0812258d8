//! A page of a user rule is parsed or rejected with a location, and its evaluation ends within the memory limit.

use lockkeeper_policies::engine::{ReviewSubject, Verdict};
use lockkeeper_policies::rule::Change;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::registry;
use lockkeeper_policies::user_rules::{KindName, Source, UserRules, review, test_fixtures};
use serde_json::{Value, json};

pub fn run(text: &str) {
    let source = Source {
        name: "page.md".to_owned(),
        text: text.to_owned(),
    };
    let rules = match UserRules::parse(&[source], &registry::all()) {
        Ok(rules) => rules,
        Err(errors) => {
            for error in errors {
                assert!(error.to_string().starts_with("page.md:"), "{error}");
            }
            return;
        }
    };
    let _ = test_fixtures(&rules);
    let (old, new) = (object(1), object(4));
    for rule in rules.iter() {
        for kind in &rule.kinds {
            let kind = KindName {
                group: &kind.group,
                version: &kind.version,
                kind: &kind.kind,
            };
            for subject in [
                ReviewSubject::Create(&new),
                ReviewSubject::Update(Change { old: &old, new: &new }),
                ReviewSubject::Delete(&old),
            ] {
                let mut verdict = Verdict::default();
                review(&rules, kind, &subject, &Settings::default(), &mut verdict);
            }
        }
    }
}

fn object(count: u32) -> Value {
    json!({
        "metadata": {"name": "example", "namespace": "team", "labels": {"a/b": "c"}},
        "spec": {"podSets": [{"name": "main", "count": count}, {"name": "other"}], "active": true},
        "data": {"text": "x".repeat(1_000), "items": (0..100).collect::<Vec<u32>>()},
    })
}
