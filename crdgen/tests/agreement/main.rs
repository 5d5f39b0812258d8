//! What rules say in Kubernetes' CEL is what they say in Rust, object by object: in the schemas of lockkeeper's kinds and
//! in admission policies, when objects are made and when they are changed.
//!
//! `LOCKKEEPER_CASES` says how many objects there are for each rule.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod generator;

use generator::{Draw, changed, examples};
use k8s_openapi::api::core::v1::Pod;
use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context as Cel, Program, Value as Said};
use lockkeeper_api::config::{Action, Config};
use lockkeeper_api::foreign::koordinator::ElasticQuota;
use lockkeeper_api::{ClusterQueue, Cohort, ResourceFlavor, Workload};
use lockkeeper_crdgen::admission::translate;
use lockkeeper_crdgen::{definitions, expressions};
use lockkeeper_policies::engine::{Subject, review};
use lockkeeper_policies::guarded::Guarded;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Change, Context, Layer, RuleInfo};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::structure::Structure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many objects there are for each rule, if nobody says.
const CASES: usize = 1000;

fn cases() -> usize {
    let given = std::env::var("LOCKKEEPER_CASES").ok();
    given.map_or(CASES, |it| {
        it.parse().expect("LOCKKEEPER_CASES is a number")
    })
}

/// What a rule says of an object that is made, or changed from another.
type Judge = fn(&str, &Value, Option<&Value>) -> Option<bool>;

/// Whether a rule accepts. Nothing is said of what is no object of the kind.
fn accepts<T: Guarded>(rule: &str, new: &Value, old: Option<&Value>) -> Option<bool> {
    let read = |it: &Value| serde_json::from_value::<T>(it.clone()).ok();
    let new = read(new)?;
    let old = match old {
        Some(old) => Some(read(old)?),
        None => None,
    };
    let mut config = Config::default();
    // A verdict has room for so many findings, so others say nothing.
    for other in registry::all() {
        config
            .rules
            .actions
            .insert(other.id.to_owned(), Action::Off);
    }
    config
        .rules
        .actions
        .insert(rule.to_owned(), Action::Enforce);
    let settings = registry::settings(&config).unwrap();
    let index = Index::default();
    let context = Context {
        world: &index,
        settings: &settings,
    };
    let verdict = match &old {
        Some(old) => review(&Subject::Update(Change { old, new: &new }), &context),
        None => review(&Subject::Create(&new), &context),
    };
    Some(!verdict.denials.iter().any(|it| it.rule == rule))
}

fn judge(rule: &RuleInfo) -> Judge {
    match rule.kind.as_str() {
        "ClusterQueue" => accepts::<ClusterQueue>,
        "Cohort" => accepts::<Cohort>,
        "ResourceFlavor" => accepts::<ResourceFlavor>,
        "Workload" => accepts::<Workload>,
        "Pod" => accepts::<Pod>,
        "ElasticQuota" => accepts::<ElasticQuota>,
        other => panic!("no kind {other}"),
    }
}

/// The rules that say something in CEL, once for each kind that they hold for; those of Kueue's kinds are the same.
fn rules() -> Vec<RuleInfo> {
    let mut all = registry::all();
    all.retain(|rule| {
        rule.group != lockkeeper_api::foreign::kueue::GROUP && !said(rule).is_empty()
    });
    all
}

fn said(rule: &RuleInfo) -> Vec<lockkeeper_policies::expression::Expression> {
    let expressions = rule.layers.iter().filter_map(|it| match it {
        Layer::Schema(all) | Layer::Policy(all) => Some(all.iter().copied()),
        _ => None,
    });
    expressions.flatten().collect()
}

/// The schema of a kind with the expressions of one rule, and what it says of shapes.
struct Schema {
    plain: Value,
    shape: Structure,
    of_rule: Option<Structure>,
}

impl Schema {
    /// That of lockkeeper's kinds; of others what the examples of a page need.
    fn of(rule: &RuleInfo) -> Self {
        let all = lockkeeper_crdgen::plain_definitions();
        let own = all
            .into_iter()
            .find(|it| it.spec.names.kind == rule.kind && rule.group == lockkeeper_api::GROUP);
        let plain = own.map_or_else(foreign, |it| root(&serde_json::to_value(it).unwrap()));
        let mut only = plain.clone();
        let mut is_in_schema = false;
        for layer in rule.layers {
            let Layer::Schema(expressions) = layer else {
                continue;
            };
            for it in *expressions {
                is_in_schema = true;
                let node = node(&mut only, it.at);
                let list = node
                    .entry("x-kubernetes-validations")
                    .or_insert_with(|| json!([]));
                list.as_array_mut()
                    .unwrap()
                    .push(json!({"rule": it.holds, "message": it.message}));
            }
        }
        Self {
            shape: Structure::new(&plain).unwrap(),
            of_rule: is_in_schema.then(|| Structure::new(&only).unwrap()),
            plain,
        }
    }

    /// Whether the API server would ask rules about an object at all.
    fn is_shaped(&self, object: &Value) -> bool {
        self.shape.shape(object, None).is_empty()
    }
}

fn root(crd: &Value) -> Value {
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// Pods and ElasticQuotas, as far as the rules look at them.
fn foreign() -> Value {
    let amounts =
        json!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}});
    let labels = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"labels": labels, "name": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": true},
        "spec": {"type": "object", "properties": {"min": amounts, "max": amounts}, "x-kubernetes-preserve-unknown-fields": true},
    }})
}

fn node<'a>(schema: &'a mut Value, at: &str) -> &'a mut serde_json::Map<String, Value> {
    let mut node = schema;
    for step in at.split('.') {
        let name = step.trim_end_matches("[]");
        node = &mut node["properties"][name];
        if step.ends_with("[]") {
            node = &mut node["items"];
        }
    }
    node.as_object_mut().unwrap()
}

/// What was tried of a rule.
#[derive(Default)]
struct Tried {
    made: usize,
    refused: usize,
    changed: usize,
    changed_refused: usize,
    stricter: usize,
    looser: usize,
    tighter: usize,
    disagreements: Vec<String>,
}

impl Tried {
    fn agree(
        &mut self,
        said: bool,
        expected: bool,
        layer: &str,
        object: &Value,
        old: Option<&Value>,
    ) {
        if said != expected {
            let from = old
                .map(|it| format!("{}\nto\n", shown(it)))
                .unwrap_or_default();
            let word = if said { "lets pass" } else { "refuses" };
            self.disagreements
                .push(format!("the {layer} {word}\n{from}{}", shown(object)));
        }
    }
}

#[test]
fn expressions_say_what_rules_say() {
    let mut table = BTreeMap::new();
    for rule in rules() {
        let tried = try_rule(&rule);
        table.insert(format!("{} {}", rule.id, rule.kind), tried);
    }
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

fn try_rule(rule: &RuleInfo) -> Tried {
    let schema = Schema::of(rule);
    let judge = judge(rule);
    let version = if rule.group == lockkeeper_api::GROUP {
        "lockkeeper.dev/v1alpha1"
    } else {
        "v1"
    };
    let seeds = examples(rule.doc, version, &rule.kind);
    assert!(
        !seeds.is_empty(),
        "{}: its page has no examples of {}",
        rule.id,
        rule.kind
    );
    let policy = policy(rule);
    let mut draw = Draw::new(7);
    let mut tried = Tried::default();
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
        let mut object = changed(&seed, &schema.plain, &mut draw);
        schema.shape.fill(&mut object);
        if !schema.is_shaped(&object) {
            continue;
        }
        let Some(is_accepted) = judge(rule.id, &object, None) else {
            continue;
        };
        tried.made += 1;
        tried.refused += usize::from(!is_accepted);
        if let Some(of_rule) = &schema.of_rule {
            let said = of_rule.check(&object, None).is_empty();
            tried.agree(said, is_accepted, "schema", &object, None);
        }
        tried.agree(
            policy.accepts(&object, None),
            is_accepted,
            "policy",
            &object,
            None,
        );
        let mut old = seed;
        schema.shape.fill(&mut old);
        if schema.is_shaped(&old)
            && let Some(is_kept) = judge(rule.id, &object, Some(&old))
        {
            tried.changed += 1;
            tried.changed_refused += usize::from(!is_kept);
            if let Some(of_rule) = &schema.of_rule {
                let said = of_rule.check(&object, Some(&old)).is_empty();
                // The API server looks anew at a list whose items it cannot tell apart.
                if is_kept && !said && !is_accepted {
                    tried.stricter += 1;
                } else {
                    tried.agree(said, is_kept, "schema", &object, Some(&old));
                }
            }
            let said = policy.accepts(&object, Some(&old));
            let was_accepted = judge(rule.id, &old, None) == Some(true);
            // Both judge by what an update makes worse, and differ in what is the same mistake: a policy knows neither
            // how often one stood there nor, of lists without keys, where.
            if said && !is_kept && !is_accepted && !was_accepted {
                tried.looser += 1;
            } else if !said && is_kept && !is_accepted && !was_accepted {
                tried.tighter += 1;
            } else {
                tried.agree(said, is_kept, "policy", &object, Some(&old));
            }
        }
        before = Some(object);
    }
    tried
}

fn shown(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap()
}

/// What an admission policy asks for a rule.
struct Policy(Vec<Program>);

fn policy(rule: &RuleInfo) -> Policy {
    let all = said(rule).into_iter();
    let asked = all.map(|it| Program::compile(&translate::of_object(&it, rule.ratchets)).unwrap());
    Policy(asked.collect())
}

impl Policy {
    /// Whether it accepts. What cannot be answered is refused.
    fn accepts(&self, object: &Value, old: Option<&Value>) -> bool {
        let mut asked = Cel::default().with_all();
        asked.add_variable_from_value("object", in_cel(object));
        asked.add_variable_from_value("oldObject", old.map_or(Said::Null, in_cel));
        let mut all = self.0.iter();
        all.all(|it| matches!(it.execute(&asked), Ok(Said::Bool(true))))
    }
}

/// A value as the API server shows it to expressions.
fn in_cel(value: &Value) -> Said {
    match value {
        Value::Null => Said::Null,
        Value::Bool(it) => Said::Bool(*it),
        Value::Number(it) => it
            .as_i64()
            .map_or_else(|| Said::Float(it.as_f64().unwrap()), Said::Int),
        Value::String(it) => Said::String(Arc::new(it.clone())),
        Value::Array(items) => Said::List(Arc::new(items.iter().map(in_cel).collect())),
        Value::Object(fields) => {
            let entries = fields
                .iter()
                .map(|(key, it)| (Key::String(Arc::new(key.clone())), in_cel(it)));
            Said::Map(Map {
                map: Arc::new(entries.collect()),
            })
        }
    }
}

#[test]
fn all_expressions_can_be_used() {
    definitions(&Settings::default()).unwrap();
    for rule in rules() {
        for expression in said(&rule) {
            assert_eq!(
                expression.is_about_updates(),
                !rule
                    .operations
                    .contains(&lockkeeper_policies::rule::Operation::Create)
            );
            assert!(!expressions::rules_of(&rule.group, &rule.kind).is_empty());
        }
    }
}
