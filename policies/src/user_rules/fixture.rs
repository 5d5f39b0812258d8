//! Runs the fixtures of a page: each bad example must have exactly the findings listed after it, and each good
//! example none.

use super::evaluate::run_rules;
use super::page::{KindName, UserRule};
use super::rule_set::UserRules;
use crate::engine::{ReviewSubject, Verdict};
use crate::rule::Change;
use crate::rule_page::{Block, blocks};
use crate::settings::Settings;
use lockkeeper_api::config::Action;
use serde_json::{Value, json};

/// The most fixtures of a page that are run.
const FIXTURES_MAX: usize = 256;

/// A fixture and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixtureResult {
    /// The id of the rule.
    pub rule: String,
    /// The line of the page on which it begins, from 1.
    pub line: usize,
    /// The info string of the block.
    pub fixture: String,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a fixture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The findings are the expected ones.
    Passed,
    /// The findings differ.
    Mismatch {
        /// The findings that the page lists.
        expected: Vec<String>,
        /// The findings of the rule.
        found: Vec<String>,
    },
    /// The fixture cannot run.
    Broken(String),
}

/// Runs all fixtures of the pages, each page by its own rule alone.
#[must_use]
pub fn test_fixtures(rules: &UserRules) -> Vec<FixtureResult> {
    rules.iter().flat_map(test_page).collect()
}

fn test_page(rule: &UserRule) -> Vec<FixtureResult> {
    let mut out = Vec::new();
    let (mut good, mut bad) = (false, false);
    let mut old: Option<Value> = None;
    let blocks = blocks(&rule.doc).into_iter();
    let mut blocks = blocks.take(FIXTURES_MAX).peekable();
    while let Some(block) = blocks.next() {
        let words: Vec<&str> = block.info.split_whitespace().collect();
        let outcome = match words[..] {
            ["yaml", "old"] => match object(rule, &block) {
                Ok(object) => {
                    old = Some(object);
                    continue;
                }
                Err(why) => Outcome::Broken(why),
            },
            ["yaml", "good", ref rest @ ..] => {
                good = true;
                outcome(rule, &block, old.take().as_ref(), rest, Vec::new())
            }
            ["yaml", "bad", ref rest @ ..] => {
                bad = true;
                match blocks.next_if(|it| it.info == "finding") {
                    Some(listed) => {
                        let listed = listed.text.lines().map(str::to_owned).collect();
                        outcome(rule, &block, old.take().as_ref(), rest, listed)
                    }
                    None => Outcome::Broken("no block `finding` follows it".to_owned()),
                }
            }
            ["finding"] => Outcome::Broken("no block `yaml bad` is before it".to_owned()),
            ["yaml", "world" | "config"] => {
                Outcome::Broken("a rule of yours sees its object alone".to_owned())
            }
            // Other blocks are documentation.
            _ => continue,
        };
        out.push(fixture_result(rule, block.line, &block.info, outcome));
    }
    if !(good && bad) {
        let why = "a page has an example `yaml bad` and one `yaml good`";
        out.push(fixture_result(
            rule,
            1,
            "page",
            Outcome::Broken(why.to_owned()),
        ));
    }
    out
}

fn fixture_result(rule: &UserRule, line: usize, fixture: &str, outcome: Outcome) -> FixtureResult {
    // Line numbers of blocks start after the front matter.
    let line = line.saturating_add(rule.doc_line).saturating_sub(1);
    FixtureResult {
        rule: rule.id.clone(),
        line,
        fixture: fixture.to_owned(),
        outcome,
    }
}

fn outcome(
    rule: &UserRule,
    block: &Block,
    old: Option<&Value>,
    words: &[&str],
    expected: Vec<String>,
) -> Outcome {
    let new = match object(rule, block) {
        Ok(new) => new,
        Err(why) => return Outcome::Broken(why),
    };
    let subject = match (old, words) {
        (None, []) => ReviewSubject::Create(&new),
        (Some(old), []) => ReviewSubject::Update(Change { old, new: &new }),
        (None, ["delete"]) => ReviewSubject::Delete(&new),
        _ => return Outcome::Broken(format!("{:?} is no fixture", block.info)),
    };
    let found = findings(rule, &new, &subject);
    if found == expected {
        return Outcome::Passed;
    }
    Outcome::Mismatch { expected, found }
}

/// The findings of the rule for an object, in the format of pages.
fn findings(rule: &UserRule, object: &Value, subject: &ReviewSubject<'_, Value>) -> Vec<String> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = KindName::from_api_version(text("apiVersion"), text("kind"));
    let mut verdict = Verdict::default();
    let on = std::iter::once((rule, Action::Enforce));
    run_rules(on, kind, subject, &Settings::default(), &mut verdict);
    let all = verdict.denials.iter().chain(&verdict.warnings);
    let all = all.chain(&verdict.audits);
    all.map(|finding| format!("{} {finding}", finding.rule))
        .collect()
}

/// The object of a block. The default name is `example`, and the default kind is that of a rule with a single kind.
fn object(rule: &UserRule, block: &Block) -> Result<Value, String> {
    let read: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&block.text);
    let read = read.map_err(|error| {
        let text = error.without_snippet().to_string();
        text.lines().next().unwrap_or_default().to_owned()
    })?;
    let Ok([Value::Object(mut fields)]) = <[Value; 1]>::try_from(read) else {
        return Err("it is not one object".to_owned());
    };
    // With several kinds, the fixture must state its own.
    if let [only] = rule.kinds.as_slice() {
        let version = fields.entry("apiVersion");
        version.or_insert_with(|| only.api_version().into());
        let kind = fields.entry("kind");
        kind.or_insert_with(|| only.kind.clone().into());
    }
    let metadata = fields.entry("metadata");
    metadata.or_insert_with(|| json!({"name": "example"}));
    let object = Value::Object(fields);
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = KindName::from_api_version(text("apiVersion"), text("kind"));
    if rule.applies_to(kind) {
        Ok(object)
    } else {
        Err("the rule does not hold for its apiVersion and kind".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixture_results_have_page_line_numbers() {
        let page = "---\nid: TEAM001\nname: a\nkinds: [{version: v1, kind: Pod}]\nvalidations:\n- expression: object.spec.a == 1\n---\n# T\n\n```yaml bad\nspec: {a: 2}\n```\n```finding\n```\n";
        let rule = UserRule::parse(page, &crate::registry::all()).unwrap();
        let tested = test_page(&rule);
        assert_eq!(tested[0].line, 10);
        assert!(page.lines().nth(9).unwrap().starts_with("```yaml bad"));
        assert!(matches!(&tested[0].outcome, Outcome::Mismatch { found, .. } if found.len() == 1));
        assert!(matches!(&tested[1].outcome, Outcome::Broken(why) if why.contains("yaml good")));
    }
}
