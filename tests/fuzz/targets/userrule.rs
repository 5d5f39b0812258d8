//! A page of a user's rule is a rule or an error with its place, and whatever it asks of an object ends with little
//! memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockkeeper_policies::engine::{Subject, Verdict};
use lockkeeper_policies::rule::Change;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user::{KindName, Rules, Source, review, test};
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let source = Source {
        name: "page.md".to_owned(),
        text: text.to_owned(),
    };
    let rules = match Rules::read(&[source]) {
        Ok(rules) => rules,
        Err(errors) => {
            for error in errors {
                assert!(error.to_string().starts_with("page.md:"), "{error}");
            }
            return;
        }
    };
    let _ = test(&rules);
    let (old, new) = (object(1), object(4));
    for rule in rules.iter() {
        for kind in &rule.kinds {
            let kind = KindName {
                group: &kind.group,
                version: &kind.version,
                kind: &kind.kind,
            };
            for subject in [
                Subject::Create(&new),
                Subject::Update(Change { old: &old, new: &new }),
                Subject::Delete(&old),
            ] {
                let mut verdict = Verdict::default();
                review(&rules, kind, &subject, &Settings::default(), &mut verdict);
            }
        }
    }
});

fn object(count: u32) -> Value {
    json!({
        "metadata": {"name": "example", "namespace": "team", "labels": {"a/b": "c"}},
        "spec": {"podSets": [{"name": "main", "count": count}, {"name": "other"}], "active": true},
        "data": {"text": "x".repeat(1_000), "items": (0..100).collect::<Vec<u32>>()},
    })
}
