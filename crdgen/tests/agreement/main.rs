//! For random objects, the CEL form of each rule has the same result as the rule in Rust: in the schemas of lockkeeper's kinds and
//! in admission policies, on creation and on update.
//!
//! `LOCKKEEPER_CASES` is the number of objects for each rule.
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
use kube_cel::cel::{Context as Cel, Program, Value as CelValue};
use lockkeeper_crdgen::admission_policies::cel_rewrite;
use lockkeeper_crdgen::{cel, definitions};
use lockkeeper_policies::rule::RuleInfo;
use lockkeeper_policies::settings::Settings;
use lockkeeper_testkit::Rng;
use rules::{RustRule, Schema, cel_expressions, rules, version};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

/// The default number of objects per rule.
const CASES: usize = 1000;

fn cases() -> usize {
    let value = std::env::var("LOCKKEEPER_CASES").ok();
    value.map_or(CASES, |text| {
        text.parse().expect("LOCKKEEPER_CASES is a number")
    })
}

/// The results of the generated objects of a rule.
#[derive(Default)]
struct RuleTally {
    made: usize,
    rejected: usize,
    changed: usize,
    changed_rejected: usize,
    stricter: usize,
    looser: usize,
    tighter: usize,
    disagreements: Vec<String>,
}

impl RuleTally {
    fn record_agreement(
        &mut self,
        is_accepted: bool,
        expected: bool,
        layer: &str,
        object: &Value,
        old: Option<&Value>,
    ) {
        if is_accepted != expected {
            let from = old
                .map(|it| format!("{}\nto\n", to_yaml(it)))
                .unwrap_or_default();
            let word = if is_accepted { "lets pass" } else { "rejects" };
            self.disagreements
                .push(format!("the {layer} {word}\n{from}{}", to_yaml(object)));
        }
    }
}

#[test]
fn cel_expressions_agree_with_rules() {
    let mut table = BTreeMap::new();
    let all = rules();
    // Two threads, because each rule takes seconds.
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
    for (name, tally) in &table {
        disagreements += tally.disagreements.len();
        for text in tally.disagreements.iter().take(2) {
            println!(
                "{name}: {} disagreements: {text}",
                tally.disagreements.len()
            );
        }
        println!(
            "{name}: made {} ({} rejected), changed {} ({} rejected, {} by the schema alone, {} not by the policy, {} by the policy alone)",
            tally.made,
            tally.rejected,
            tally.changed,
            tally.changed_rejected,
            tally.stricter,
            tally.looser,
            tally.tighter
        );
    }
    assert_eq!(
        disagreements, 0,
        "objects with different results of a rule and its expressions"
    );
    for (name, tally) in &table {
        assert!(
            tally.changed_rejected * 100 > tally.changed,
            "{name}: too few changes are rejected"
        );
        let is_about_updates = tally.rejected == 0 && tally.changed_rejected > 0;
        assert!(
            is_about_updates || tally.rejected * 20 > tally.made,
            "{name}: too few objects are rejected"
        );
        assert!(
            (tally.made - tally.rejected) * 20 > tally.made,
            "{name}: too few objects are accepted"
        );
    }
}

fn tally_rule(rule: &RuleInfo) -> RuleTally {
    let schema = Schema::for_rule(rule);
    let in_rust = RustRule::new(rule);
    let seeds = examples(rule.doc, version(rule), &rule.kind);
    assert!(
        !seeds.is_empty(),
        "{}: its page has no examples of {}",
        rule.id,
        rule.kind
    );
    let policy = policy(rule);
    let mut draw = Rng::new(7);
    let mut tally = RuleTally::default();
    let mut before: Option<Value> = None;
    let mut attempts = 0;
    while tally.made < cases() {
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
        let Some(is_accepted) = in_rust.accepts(&object, None) else {
            continue;
        };
        let case = RuleCase {
            in_rust: &in_rust,
            schema: &schema,
            policy: &policy,
            object: &object,
        };
        case.check_create(is_accepted, &mut tally);
        let mut old = seed;
        schema.shape.apply_defaults(&mut old);
        if schema.has_valid_shape(&old)
            && let Some(is_kept) = in_rust.accepts(&object, Some(&old))
        {
            case.check_update(&old, is_accepted, is_kept, &mut tally);
        }
        before = Some(object);
    }
    tally
}

/// An object that a rule, its schema and its policy validate.
struct RuleCase<'a> {
    in_rust: &'a RustRule,
    schema: &'a Schema,
    policy: &'a Policy,
    object: &'a Value,
}

impl RuleCase<'_> {
    fn check_create(&self, is_accepted: bool, tally: &mut RuleTally) {
        let object = self.object;
        tally.made += 1;
        tally.rejected += usize::from(!is_accepted);
        if let Some(of_rule) = &self.schema.of_rule {
            let passes = of_rule.check(object, None).is_empty();
            let is_for_policies = passes && !self.schema.is_whole;
            let expected = is_accepted || is_for_policies;
            tally.record_agreement(passes, expected, "schema", object, None);
        }
        let passes = self.policy.accepts(object, None);
        tally.record_agreement(passes, is_accepted, "policy", object, None);
    }

    fn check_update(&self, old: &Value, is_accepted: bool, is_kept: bool, tally: &mut RuleTally) {
        let object = self.object;
        tally.changed += 1;
        tally.changed_rejected += usize::from(!is_kept);
        if let Some(of_rule) = &self.schema.of_rule {
            let passes = of_rule.check(object, Some(old)).is_empty();
            // The API server validates a list again if it cannot distinguish its items.
            if is_kept && !passes && !is_accepted {
                tally.stricter += 1;
            } else {
                let is_for_policies = passes && !self.schema.is_whole;
                let expected = is_kept || is_for_policies;
                tally.record_agreement(passes, expected, "schema", object, Some(old));
            }
        }
        let passes = self.policy.accepts(object, Some(old));
        let was_accepted = self.in_rust.accepts(old, None) == Some(true);
        // Both report only what an update makes worse. They differ for repeated mistakes: a policy does not count
        // them, and does not know their positions in lists without keys.
        if passes && !is_kept && !is_accepted && !was_accepted {
            tally.looser += 1;
        } else if !passes && is_kept && !is_accepted && !was_accepted {
            tally.tighter += 1;
        } else {
            tally.record_agreement(passes, is_kept, "policy", object, Some(old));
        }
    }
}

fn to_yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap()
}

/// The expressions of an admission policy for one rule.
struct Policy {
    programs: Vec<Program>,
    /// The functions of Kubernetes, registered once.
    functions: Cel<'static>,
}

fn policy(rule: &RuleInfo) -> Policy {
    let all = cel_expressions(rule).into_iter();
    let programs = all
        .map(|it| Program::compile(&cel_rewrite::rewrite_for_object(&it, rule.ratchets)).unwrap());
    Policy {
        programs: programs.collect(),
        functions: Cel::default().with_all(),
    }
}

impl Policy {
    /// Whether all expressions accept. An error rejects.
    fn accepts(&self, object: &Value, old: Option<&Value>) -> bool {
        let mut context = self.functions.new_inner_scope();
        context.add_variable_from_value("object", to_cel(object));
        context.add_variable_from_value("oldObject", old.map_or(CelValue::Null, to_cel));
        let mut all = self.programs.iter();
        all.all(|it| matches!(it.execute(&context), Ok(CelValue::Bool(true))))
    }
}

/// A value as the API server shows it to expressions.
fn to_cel(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| CelValue::Float(number.as_f64().unwrap()), CelValue::Int),
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let entries = fields
                .iter()
                .map(|(key, it)| (Key::String(Arc::new(key.clone())), to_cel(it)));
            CelValue::Map(Map {
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
