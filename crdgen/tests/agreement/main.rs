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
use kube_cel::{VapEvaluator, VapExpression};
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
}

#[test]
fn expressions_say_what_rules_say() {
    let mut table = BTreeMap::new();
    for rule in rules() {
        let tried = try_rule(&rule);
        table.insert(format!("{} {}", rule.id, rule.kind), tried);
    }
    for (name, it) in &table {
        println!(
            "{name}: made {} ({} refused), changed {} ({} refused, {} by the schema alone)",
            it.made, it.refused, it.changed, it.changed_refused, it.stricter
        );
        assert!(
            it.changed_refused * 50 > it.changed,
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
        let shown = || serde_yaml(&object);
        if let Some(of_rule) = &schema.of_rule {
            let findings = of_rule.check(&object, None);
            assert_eq!(
                findings.is_empty(),
                is_accepted,
                "{} schema: {findings:?}\n{}",
                rule.id,
                shown()
            );
        }
        assert_eq!(
            policy.accepts(&object, None),
            is_accepted,
            "{} policy\n{}",
            rule.id,
            shown()
        );
        let mut old = seed;
        schema.shape.fill(&mut old);
        if schema.is_shaped(&old)
            && let Some(is_kept) = judge(rule.id, &object, Some(&old))
        {
            tried.changed += 1;
            tried.changed_refused += usize::from(!is_kept);
            let shown = || format!("{}\nto\n{}", serde_yaml(&old), shown());
            if let Some(of_rule) = &schema.of_rule {
                let findings = of_rule.check(&object, Some(&old));
                // The API server looks anew at a list whose items it cannot tell apart.
                if is_kept && !findings.is_empty() {
                    assert!(
                        !is_accepted,
                        "{} schema: {findings:?}\n{}",
                        rule.id,
                        shown()
                    );
                    tried.stricter += 1;
                }
                assert!(
                    is_kept || !findings.is_empty(),
                    "{} schema lets pass\n{}",
                    rule.id,
                    shown()
                );
            }
            assert_eq!(
                policy.accepts(&object, Some(&old)),
                is_kept,
                "{} policy\n{}",
                rule.id,
                shown()
            );
        }
        before = Some(object);
    }
    tried
}

fn serde_yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap()
}

/// What an admission policy asks for a rule.
struct Policy(Vec<VapExpression>);

fn policy(rule: &RuleInfo) -> Policy {
    let all = said(rule).into_iter().map(|it| VapExpression {
        expression: translate::of_object(&it, rule.ratchets),
        message: None,
        message_expression: translate::detail(&it),
    });
    Policy(all.collect())
}

impl Policy {
    fn accepts(&self, object: &Value, old: Option<&Value>) -> bool {
        let mut asked = VapEvaluator::builder().object(object.clone());
        if let Some(old) = old {
            asked = asked.old_object(old.clone());
        }
        asked.build().evaluate(&self.0).iter().all(|it| it.passed)
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
