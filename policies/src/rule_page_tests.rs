//! Runs every page: its bad examples must have exactly the listed findings, and its good examples no finding of any
//! rule.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use crate::admission_policy;
use crate::cluster_view::{ClusterView, Lookup, PriorityClassFacts};
use crate::decode_error;
use crate::engine::{ReviewSubject, Verdict, review};
use crate::facts;
use crate::finding::Finding;
use crate::index::Index;
use crate::kinds::{self, KindVisitor};
use crate::kueue::structural_schema as kueue_structure;
use crate::lossy_conversion;
use crate::registry;
use crate::rule::{Change, Context, Operation, RuleInfo};
use crate::rule_page::blocks;
use crate::schema::metadata;
use crate::settings::Settings;
use crate::suppression::Suppressions;
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::Workload;
use lockkeeper_api::config::{Action, Config};
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::foreign::scheduling::v1beta1;
use lockkeeper_crd_schema::admission_policy::{AdmissionRequest, PolicySet, Resource};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).expect("a yaml block of a page")
}

/// The objects of a `yaml world` block.
#[derive(Default)]
struct World {
    index: Index,
    definitions: Vec<Value>,
}

impl World {
    fn parse(yaml: &str) -> Self {
        let mut world = Self::default();
        for document in documents(yaml) {
            if document["kind"] == "CustomResourceDefinition" {
                world.definitions.push(document);
                continue;
            }
            let found = facts::ingest(&mut world.index, &document);
            found.expect("an object of a `yaml world` block");
        }
        world
    }
}

impl ClusterView for World {
    fn fallback(&self) -> Option<&dyn ClusterView> {
        Some(&self.index)
    }

    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        self.index.priority_class(name)
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        self.index.global_default()
    }

    fn definition(&self, name: &str, _: &str) -> Lookup<&Value> {
        let mut all = self.definitions.iter();
        let found = all.find(|it| it["metadata"]["name"] == name);
        found.map_or(Lookup::Absent, Lookup::Found)
    }
}

/// The object of a block. An object without metadata gets a name.
fn object<T: ValidatedKind>(mut value: Value) -> T {
    if value["metadata"].is_null() {
        value["metadata"] = json!({"name": "example"});
    }
    value["apiVersion"] = T::api_version(&()).into();
    value["kind"] = T::kind(&()).into();
    serde_json::from_value(value).expect("an object of a page")
}

/// Reviews an object, given the stored one, the words of its block's info string, and the context.
type Reviewer = fn(Value, Option<Value>, &[&str], &Context<'_>) -> Verdict;

/// The reviewer for an example with an apiVersion that differs from that of the page's kind.
fn reviewer_for_version(object: &Value, kind: &str) -> Option<Reviewer> {
    match (object["apiVersion"].as_str()?, kind) {
        ("scheduling.k8s.io/v1beta1", "Workload") => Some(review_object::<v1beta1::Workload>),
        ("scheduling.k8s.io/v1beta1", "PodGroup") => Some(review_object::<v1beta1::PodGroup>),
        (version, _) => panic!("no runner for examples of {version}"),
    }
}

/// Runs a page with the first kind that has its rule.
struct PageRunner<'a> {
    rule: &'a RuleInfo,
    has_run: bool,
}

impl KindVisitor for PageRunner<'_> {
    fn kind<T: ValidatedKind>(&mut self) {
        let is_kind = T::group(&()) == self.rule.group && T::kind(&()) == self.rule.kind;
        if is_kind && !self.has_run {
            run::<T>(self.rule);
            self.has_run = true;
        }
    }
}

/// The rules about a field that every ClusterQueue needs, and about the fields of pod groups.
const OFF_ON_OTHER_PAGES: [&str; 2] = ["CQ032", "WL020"];

/// Runs the page of one rule.
fn run<T: ValidatedKind>(rule: &RuleInfo) {
    let (mut bad, mut good) = (0, 0);
    let (mut world, mut settings) = (World::default(), settings_for(rule, Config::default()));
    let mut old: Option<Value> = None;
    let mut blocks = blocks(rule.doc).into_iter().peekable();
    while let Some(block) = blocks.next() {
        let context = Context {
            cluster: &world,
            settings: &settings,
        };
        let words: Vec<&str> = block.info.split(' ').collect();
        match words[..] {
            ["yaml", "world"] => world = World::parse(&block.text),
            ["yaml", "config"] => {
                let config: Config = serde_saphyr::from_str(&block.text).expect("a configuration");
                settings = settings_for(rule, config);
            }
            ["yaml", "old"] => old = Some(documents(&block.text).remove(0)),
            ["yaml", kind, ref rest @ ..] => {
                let new = documents(&block.text).remove(0);
                let reviewer = reviewer_for_version(&new, &rule.kind).unwrap_or(review_object::<T>);
                let verdict = reviewer(new, old.take(), rest, &context);
                let seen = texts(&verdict);
                if kind == "good" {
                    good += 1;
                    assert_eq!(seen, Vec::<String>::new(), "{}: a good example", rule.id);
                } else {
                    bad += 1;
                    let expected = blocks.next().expect("findings after a bad example");
                    assert_eq!(expected.info, "finding");
                    assert_eq!(
                        seen.join("\n"),
                        expected.text,
                        "{}: {}",
                        rule.id,
                        block.text
                    );
                }
            }
            _ => panic!("{}: a block of kind {:?}", rule.id, block.info),
        }
    }
    assert!(
        bad > 0 && good > 0,
        "{}: a page has a bad and a good example",
        rule.id
    );
}

/// The settings of a configuration, with the rule on: the page of a rule that is off by default shows its findings when
/// it is on.
fn settings_for(rule: &RuleInfo, mut config: Config) -> Settings {
    // Most examples have only the fields of their rule.
    for id in OFF_ON_OTHER_PAGES.iter().filter(|it| **it != rule.id) {
        let actions = &mut config.rules.actions;
        actions.insert((*id).to_owned(), Action::Off);
    }
    if rule.action == Action::Off {
        let actions = &mut config.rules.actions;
        let action = actions.entry(rule.id.to_owned());
        action.or_insert(Action::Enforce);
    }
    registry::settings(&config).expect("a configuration that names rules")
}

fn review_object<T: ValidatedKind>(
    new: Value,
    old: Option<Value>,
    words: &[&str],
    context: &Context<'_>,
) -> Verdict {
    let new: &T = &object(new);
    match (old.map(object), words) {
        (None, ["delete"]) => review(&ReviewSubject::Delete(new), context),
        (None, _) => review(&ReviewSubject::Create(new), context),
        (Some(old), _) => review(&ReviewSubject::Update(Change { old: &old, new }), context),
    }
}

fn texts(verdict: &Verdict) -> Vec<String> {
    let all = verdict
        .denials
        .iter()
        .chain(&verdict.warnings)
        .chain(&verdict.audits);
    all.map(|finding| format!("{} {finding}", finding.rule))
        .collect()
}

#[test]
fn rule_pages_examples_match_the_rules() {
    // A rule is tested with its first kind only. tests/conformance covers the kinds of other projects.
    for rule in declared() {
        match rule.kind.as_str() {
            "*" if rule.id == decode_error::ID => undecodable(&rule),
            "*" if rule.id == lossy_conversion::ID => check_any_kind(&rule, dropped_field_findings),
            "*" if rule.id == admission_policy::ID => check_any_kind(&rule, policy_findings),
            "*" => check_any_kind(&rule, schema_findings),
            _ => {
                let mut runner = PageRunner {
                    rule: &rule,
                    has_run: false,
                };
                kinds::visit(&mut runner);
                assert!(runner.has_run, "{}: no kind {}", rule.id, rule.kind);
            }
        }
    }
}

/// The findings of Kueue's schemas.
fn schema_findings(objects: &mut [Value]) -> Vec<Finding> {
    let object = &mut objects[0];
    let kind = object["kind"].as_str().unwrap().to_owned();
    let version = object["apiVersion"].as_str().unwrap();
    let structure = version
        .split_once('/')
        .and_then(|it| kueue_structure(&kind, it.1));
    let structure = structure.expect("one of Kueue's kinds");
    let mut findings = structure.prune(object);
    structure.apply_defaults(object);
    findings.extend(metadata(object, kind == "Workload" || kind == "LocalQueue"));
    findings.extend(structure.check(object, None));
    if let Some(mut suppressions) = Suppressions::parse(object) {
        findings.retain(|it| suppressions.reason(&it.rule).is_none());
        findings.extend(suppressions.into_unused_findings(true));
    }
    findings
}

/// The fields that the conversion to lockkeeper's kinds drops.
fn dropped_field_findings(objects: &mut [Value]) -> Vec<Finding> {
    let converted = kueue::convert(&objects[0]).expect("an object of Kueue");
    converted
        .dropped
        .iter()
        .map(lossy_conversion::dropped_field)
        .collect()
}

/// The findings of policies about the last object.
fn policy_findings(objects: &mut [Value]) -> Vec<Finding> {
    let (object, objects) = objects.split_last().unwrap();
    let mut policies = PolicySet::default();
    for policy in objects {
        policies.add(policy);
        policies.add_param(policy);
    }
    let kind = object["kind"].as_str().unwrap();
    let (group, version) = object["apiVersion"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap();
    let resource = Resource::new(group, version, kind, &Resource::plural_of(kind));
    let namespace = object["metadata"]["namespace"].as_str();
    let request = AdmissionRequest::create(object, &resource, namespace);
    let decisions = policies.validate(&request).into_iter();
    decisions
        .map(|it| admission_policy::finding(it, object).0)
        .collect()
}

/// Runs the page of a rule for any kind.
fn check_any_kind(rule: &RuleInfo, find: fn(&mut [Value]) -> Vec<Finding>) {
    let (mut bad, mut good) = (0, 0);
    let mut blocks = blocks(rule.doc).into_iter();
    while let Some(block) = blocks.next() {
        let findings = find(&mut documents(&block.text));
        let seen: Vec<String> = findings
            .iter()
            .map(|it| format!("{} {it}", it.rule))
            .collect();
        if block.info == "yaml good" {
            good += 1;
            assert_eq!(seen, Vec::<String>::new(), "{}: a good example", rule.id);
        } else {
            bad += 1;
            let expected = blocks.next().expect("findings after a bad example");
            assert_eq!(
                seen.join("\n"),
                expected.text,
                "{}: {}",
                rule.id,
                block.text
            );
        }
    }
    assert!(bad > 0 && good > 0, "{}: a bad and a good example", rule.id);
}

fn undecodable(rule: &RuleInfo) {
    let mut seen = BTreeSet::new();
    for block in blocks(rule.doc) {
        let decoded = serde_json::from_str::<Workload>(&format!(
            "{{\"metadata\":{{}},{}",
            block.text.trim_start_matches('{')
        ));
        assert_eq!(
            decoded.is_ok(),
            block.info == "json decodable",
            "{decoded:?}"
        );
        seen.insert(block.info);
    }
    assert_eq!(seen.len(), 2, "a page has a bad and a good example");
}

#[test]
fn rule_pages_match_rule_declarations() {
    for rule in declared() {
        let title = format!("# {} {}\n", rule.id, rule.name);
        assert!(
            rule.doc.starts_with(&title),
            "{}: the page starts with {title:?}",
            rule.id
        );
        let operations: Vec<&str> = rule.operations.iter().map(|o| o.as_str()).collect();
        let layers: Vec<String> = rule.layers.iter().map(ToString::to_string).collect();
        let line = format!(
            "Layers: {}. Operations: {}. Default action: {}.",
            layers.join(", "),
            operations.join(", "),
            action(rule.action)
        );
        assert!(
            rule.doc.contains(&line),
            "{}: the page contains {line:?}",
            rule.id
        );
        assert!(
            rule.doc.contains("\nSource: "),
            "{}: the page names its source",
            rule.id
        );
    }
}

/// Each rule once, as declared for its first kind.
fn declared() -> Vec<RuleInfo> {
    let mut seen = BTreeSet::new();
    let mut all = registry::all();
    all.retain(|rule| seen.insert(rule.id));
    all
}

#[test]
fn rule_metadata_is_equal_for_every_kind() {
    for rule in registry::all() {
        let declared = registry::find(rule.id).unwrap();
        assert_eq!(declared.name, rule.name, "{}", rule.id);
        assert_eq!(declared.doc, rule.doc, "{}", rule.id);
        assert_eq!(declared.covers, rule.covers, "{}", rule.id);
    }
}

fn action(action: Action) -> String {
    serde_json::to_value(action)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn ids_and_names_are_well_formed_and_unique() {
    let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
    for rule in declared() {
        let (letters, digits) = rule.id.split_at(2);
        assert!(
            letters.bytes().all(|b| b.is_ascii_uppercase()),
            "{}",
            rule.id
        );
        assert!(
            digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()),
            "{}",
            rule.id
        );
        assert!(
            rule.name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b == b'-'),
            "{}",
            rule.name
        );
        assert!(!rule.since.is_empty(), "{}", rule.id);
        assert!(ids.insert(rule.id), "{} is declared twice", rule.id);
        assert!(names.insert(rule.name), "{} is declared twice", rule.name);
    }
}

#[test]
fn finding_messages_follow_one_format() {
    for rule in declared() {
        for block in blocks(rule.doc)
            .iter()
            .filter(|block| block.info == "finding")
        {
            for line in block.text.lines() {
                let end = format!(" [{}]", rule.id);
                let message = line.strip_suffix(&end).expect("a finding ends in its rule");
                let detail = message.rsplit(": ").next().unwrap();
                assert!(!message.ends_with('.'), "a full stop: {line}");
                assert!(!message.to_lowercase().contains("please"), "{line}");
                let first = detail.chars().next().unwrap();
                // A list of values is not a sentence.
                let is_list = message.contains("Unsupported value: ");
                assert!(
                    !first.is_uppercase() || is_list || detail.starts_with("PriorityClass"),
                    "{line}"
                );
            }
        }
    }
}

#[test]
fn delete_is_registered_only_for_delete_rules() {
    for registration in registry::known_registrations() {
        let deletes = registration.validated_on.contains(&Operation::Delete);
        let has_delete_rule =
            ["PriorityClass", "ClusterQueue"].contains(&registration.kind.as_str());
        assert_eq!(deletes, has_delete_rule, "{}", registration.kind);
    }
}
