//! Compares both CEL evaluators on the examples.

use super::{QUEUE, run};
use std::fs;
use std::path::Path;

#[test]
fn cel_evaluators_agree_on_examples() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut texts = vec![QUEUE.to_owned()];
    for folder in ["bad", "good"] {
        for entry in fs::read_dir(examples.join(folder)).unwrap() {
            texts.push(fs::read_to_string(entry.unwrap().path()).unwrap());
        }
    }
    assert!(texts.len() > 20, "{}", texts.len());
    let names: Vec<String> = (0..texts.len()).map(|it| format!("{it}.yaml")).collect();
    let files: Vec<(&str, &str)> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    assert_eq!(run(&files, &["--verify-cel"]), run(&files, &[]));
}

/// Kueue's CEL reports the whole spec; the rule names the field and the fix.
#[test]
fn breach_of_cel_and_rule_is_reported_once() {
    let (text, _) = run(&[("queue.yaml", QUEUE)], &[]);
    assert!(text.contains("queue.yaml:12:38: error[CQ002]"), "{text}");
    assert!(!text.contains("borrowingLimit must be nil"), "{text}");
    let (text, _) = run(&[("queue.yaml", QUEUE)], &["--select", "SC"]);
    assert!(text.contains("borrowingLimit must be nil"), "{text}");
}
