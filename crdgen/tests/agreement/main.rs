//! What rules say in Kubernetes' CEL is what they say in Rust, object by object: in the schemas of lockkeeper's kinds and
//! in admission policies, when objects are made and when they are changed.
//!
//! `LOCKKEEPER_CASES` says how many objects there are for each rule.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking"
)]

mod generator;
mod rules;

use generator::{examples, random_change};
use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context as Cel, Program, Value as Said};
use lockkeeper_crdgen::admission_policies::cel_rewrite;
use lockkeeper_crdgen::{cel, definitions};
use lockkeeper_policies::rule::RuleInfo;
use lockkeeper_policies::settings::Settings;
use lockkeeper_testkit::Rng;
use rules::{Schema, cel_expressions, rule_check, rules, version};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

/// The default number of objects per rule.
const CASES: usize = 1000;

fn cases() -> usize {
    let given = std::env::var("LOCKKEEPER_CASES").ok();
    given.map_or(CASES, |it| {
        it.parse().expect("LOCKKEEPER_CASES is a number")
    })
}

/// What was tried of a rule.
#[derive(Default)]
struct RuleTally {
    made: usize,
    refused: usize,
    changed: usize,
    changed_refused: usize,
    stricter: usize,
    looser: usize,
    tighter: usize,
    disagreements: Vec<String>,
}

impl RuleTally {
    fn record_agreement(
        &mut self,
        said: bool,
        expected: bool,
        layer: &str,
        object: &Value,
        old: Option<&Value>,
    ) {
        if said != expected {
            let from = old
                .map(|it| format!("{}\nto\n", to_yaml(it)))
                .unwrap_or_default();
            let word = if said { "lets pass" } else { "refuses" };
            self.disagreements
                .push(format!("the {layer} {word}\n{from}{}", to_yaml(object)));
        }
    }
}

#[test]
fn cel_expressions_agree_with_rules() {
    let mut table = BTreeMap::new();
    let all = rules();
    // Each takes a while, and most machines do two at once.
    let (even, odd): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let try_all = |rules: &[(usize, &RuleInfo)]| -> Vec<(String, RuleTally)> {
        let named = |rule: &RuleInfo| format!("{} {}", rule.id, rule.kind);
        rules
            .iter()
            .map(|(_, rule)| (named(rule), tally_rule(rule)))
            .collect()
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| try_all(&odd));
        table.extend(try_all(&even));
        table.extend(other.join().unwrap());
    });
    let mut disagreements = 0;
    for (name, it) in &table {
        disagreements += it.disagreements.len();
        for text in it.disagreements.iter().take(2) {
            println!("{name}: {} disagreements: {text}", it.disagreements.len());
        }
        println!(
            "{name}: made {} ({} refused), changed {} ({} refused, {} by the schema alone, {} not by the policy, {} by the policy alone)",
            it.made, it.refused, it.changed, it.changed_refused, it.stricter, it.looser, it.tighter
        );
    }
    assert_eq!(
        disagreements, 0,
        "objects that a rule and its expressions judge differently"
    );
    for (name, it) in &table {
        assert!(
            it.changed_refused * 100 > it.changed,
            "{name}: too few changes are refused"
        );
        let is_about_updates = it.refused == 0 && it.changed_refused > 0;
        assert!(
            is_about_updates || it.refused * 20 > it.made,
            "{name}: too few objects are refused"
        );
        assert!(
            (it.made - it.refused) * 20 > it.made,
            "{name}: too few objects are accepted"
        );
    }
}

fn tally_rule(rule: &RuleInfo) -> RuleTally {
    let schema = Schema::for_rule(rule);
    let judge = rule_check(rule);
    let seeds = examples(rule.doc, version(rule), &rule.kind);
    assert!(
        !seeds.is_empty(),
        "{}: its page has no examples of {}",
        rule.id,
        rule.kind
    );
    let policy = policy(rule);
    let mut draw = Rng::new(7);
    let mut tried = RuleTally::default();
    let mut before: Option<Value> = None;
    let mut attempts = 0;
    while tried.made < cases() {
        attempts += 1;
        assert!(
            attempts < 400 * cases(),
            "{}: hardly any object has the right shape",
            rule.id
        );
        // An update comes from the object before, or from an example.
        let seed = match &before {
            Some(object) if draw.below(2) == 0 => object.clone(),
            _ => seeds[draw.below(seeds.len())].clone(),
        };
        let mut object = random_change(&seed, &schema.plain, &mut draw);
        schema.shape.apply_defaults(&mut object);
        if !schema.has_valid_shape(&object) {
            continue;
        }
        let Some(is_accepted) = judge(rule.id, &object, None) else {
            continue;
        };
        let asked = RuleCase {
            rule,
            schema: &schema,
            policy: &policy,
            object: &object,
        };
        asked.check_create(is_accepted, &mut tried);
        let mut old = seed;
        schema.shape.apply_defaults(&mut old);
        if schema.has_valid_shape(&old)
            && let Some(is_kept) = judge(rule.id, &object, Some(&old))
        {
            asked.check_update(&old, is_accepted, is_kept, &mut tried);
        }
        before = Some(object);
    }
    tried
}

/// An object that a rule, its schema and its policy are asked about.
struct RuleCase<'a> {
    rule: &'a RuleInfo,
    schema: &'a Schema,
    policy: &'a Policy,
    object: &'a Value,
}

impl RuleCase<'_> {
    fn check_create(&self, is_accepted: bool, tried: &mut RuleTally) {
        let object = self.object;
        tried.made += 1;
        tried.refused += usize::from(!is_accepted);
        if let Some(of_rule) = &self.schema.of_rule {
            let said = of_rule.check(object, None).is_empty();
            let is_for_policies = said && !self.schema.is_whole;
            let expected = is_accepted || is_for_policies;
            tried.record_agreement(said, expected, "schema", object, None);
        }
        let said = self.policy.accepts(object, None);
        tried.record_agreement(said, is_accepted, "policy", object, None);
    }

    fn check_update(&self, old: &Value, is_accepted: bool, is_kept: bool, tried: &mut RuleTally) {
        let object = self.object;
        tried.changed += 1;
        tried.changed_refused += usize::from(!is_kept);
        if let Some(of_rule) = &self.schema.of_rule {
            let said = of_rule.check(object, Some(old)).is_empty();
            // The API server validates a list again if it cannot tell its items apart.
            if is_kept && !said && !is_accepted {
                tried.stricter += 1;
            } else {
                let is_for_policies = said && !self.schema.is_whole;
                let expected = is_kept || is_for_policies;
                tried.record_agreement(said, expected, "schema", object, Some(old));
            }
        }
        let said = self.policy.accepts(object, Some(old));
        let was_accepted = rule_check(self.rule)(self.rule.id, old, None) == Some(true);
        // Both judge by what an update makes worse, and differ in what is the same mistake: a policy knows neither
        // how often one stood there nor, of lists without keys, where.
        if said && !is_kept && !is_accepted && !was_accepted {
            tried.looser += 1;
        } else if !said && is_kept && !is_accepted && !was_accepted {
            tried.tighter += 1;
        } else {
            tried.record_agreement(said, is_kept, "policy", object, Some(old));
        }
    }
}

fn to_yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap()
}

/// What an admission policy asks for a rule.
struct Policy(Vec<Program>);

fn policy(rule: &RuleInfo) -> Policy {
    let all = cel_expressions(rule).into_iter();
    let asked = all
        .map(|it| Program::compile(&cel_rewrite::rewrite_for_object(&it, rule.ratchets)).unwrap());
    Policy(asked.collect())
}

impl Policy {
    /// Whether it accepts. What cannot be answered is refused.
    fn accepts(&self, object: &Value, old: Option<&Value>) -> bool {
        let mut asked = Cel::default().with_all();
        asked.add_variable_from_value("object", to_cel(object));
        asked.add_variable_from_value("oldObject", old.map_or(Said::Null, to_cel));
        let mut all = self.0.iter();
        all.all(|it| matches!(it.execute(&asked), Ok(Said::Bool(true))))
    }
}

/// A value as the API server shows it to expressions.
fn to_cel(value: &Value) -> Said {
    match value {
        Value::Null => Said::Null,
        Value::Bool(it) => Said::Bool(*it),
        Value::Number(it) => it
            .as_i64()
            .map_or_else(|| Said::Float(it.as_f64().unwrap()), Said::Int),
        Value::String(it) => Said::String(Arc::new(it.clone())),
        Value::Array(items) => Said::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let entries = fields
                .iter()
                .map(|(key, it)| (Key::String(Arc::new(key.clone())), to_cel(it)));
            Said::Map(Map {
                map: Arc::new(entries.collect()),
            })
        }
    }
}

#[test]
fn cel_expressions_compile() {
    definitions(&Settings::default()).unwrap();
    for rule in rules() {
        for expression in cel_expressions(&rule) {
            assert_eq!(
                expression.is_transition_rule(),
                !rule
                    .operations
                    .contains(&lockkeeper_policies::rule::Operation::Create)
            );
            assert!(!cel::rules_for_kind(&rule.group, &rule.kind).is_empty());
        }
    }
}
