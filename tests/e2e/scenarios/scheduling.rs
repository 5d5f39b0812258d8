//! Kubernetes' own Workload and PodGroup: the examples of `v1beta1` on the rule pages have the same results on an API server.

use std::collections::BTreeMap;

use lockkeeper_api::config::{Action, Config};
use lockkeeper_api::foreign::scheduling::v1beta1;
use lockkeeper_policies::engine::{ReviewSubject, review};
use lockkeeper_policies::facts;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Change, Context};
use lockkeeper_policies::rule_page::blocks;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::{Map, Value, json};

use super::Scenario;
use crate::client::{Client, Response};
use crate::cluster::FEATURES;
use crate::fixture::{self, Fixture};
use crate::lockkeeper::Protocol;

/// Findings that no API server rejects.
const OURS: &str = "PG018";

pub fn scenarios() -> Vec<Scenario> {
    let name = "Kubernetes and the rules reject the same workloads and pod groups";
    vec![
        Scenario::new(name, examples_match_api_server)
            .only(Protocol::Http1)
            .since(37),
    ]
}

/// An example of a page.
struct Example {
    rule: &'static str,
    kind: String,
    old: Option<Value>,
    new: Value,
    /// The description of the example on the page.
    text: String,
}

fn examples_match_api_server(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.without_webhook();
    fixture::sweep(&kubectl);
    let mut client = stage.cluster().client();
    let (settings, mut world) = (settings_with_everything_on(), Index::default());
    world.mark_complete(IndexedKind::PriorityClass);
    let (mut creates, mut updates) = (0, 0);
    let classes = classes();
    for class in classes.values() {
        facts::ingest(&mut world, class).unwrap();
        let made = client.create(&collection(class), class).unwrap();
        assert_eq!(made.status, 201, "{}", made.body);
    }
    let context = Context {
        cluster: &world,
        settings: &settings,
    };
    for example in examples() {
        let (answer, found) = match &example.old {
            None => {
                creates += 1;
                let path = format!("{}?dryRun=All", collection(&example.new));
                let answer = client.create(&path, &example.new).unwrap();
                (
                    answer,
                    findings_by_kind(&example.kind, &example.new, None, &context),
                )
            }
            Some(old) => {
                updates += 1;
                let (old, new) = store_and_default(&mut client, old, &example.new);
                let path = format!("{}/{}?dryRun=All", collection(&old), "example");
                let answer = client.replace(&path, &new).unwrap();
                let found = findings_by_kind(&example.kind, &new, Some(&old), &context);
                let path = format!("{}/example", collection(&old));
                client.delete(&path).unwrap();
                if old["metadata"]["finalizers"].is_array() {
                    fixture::remove_finalizers(&kubectl, &old);
                }
                (answer, found)
            }
        };
        compare(&example, &answer, &found);
    }
    for (name, class) in &classes {
        let path = format!("{}/{name}", collection(class));
        client.delete(&path).unwrap();
    }
    assert!(creates >= 30 && updates >= 10, "{creates} and {updates}");
    println!("{creates} creates and {updates} updates are answered alike");
}

/// Settings with all of these rules and features on.
fn settings_with_everything_on() -> Settings {
    let mut config = Config::default();
    let rules = registry::all().into_iter();
    for rule in rules.filter(|it| is_checked_by_api_server(it.id)) {
        let actions = &mut config.rules.actions;
        actions.insert(rule.id.to_owned(), Action::Enforce);
    }
    let features = FEATURES.map(|name| (name.to_owned(), true));
    config.rules.feature_gates = features.into();
    registry::settings(&config).unwrap()
}

fn is_checked_by_api_server(id: &str) -> bool {
    (id.starts_with("KW") || id.starts_with("PG")) && id != OURS
}

/// The classes that the examples name. A default class would apply to every example.
fn classes() -> BTreeMap<String, Value> {
    let rules = registry::all()
        .into_iter()
        .filter(|it| is_checked_by_api_server(it.id));
    let blocks = rules.flat_map(|rule| blocks(rule.doc));
    let worlds = blocks.filter(|it| it.info == "yaml world");
    let objects = worlds.flat_map(|it| documents(&it.text));
    let classes = objects.filter(|it| it["kind"] == "PriorityClass" && it["globalDefault"] != true);
    let name = |it: &Value| it["metadata"]["name"].as_str().unwrap().to_owned();
    classes.map(|it| (name(&it), it)).collect()
}

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// All examples for the version that the API server serves.
fn examples() -> Vec<Example> {
    let mut seen = BTreeMap::new();
    for rule in registry::all() {
        if is_checked_by_api_server(rule.id) {
            seen.entry(rule.id).or_insert(rule);
        }
    }
    let mut out = Vec::new();
    for rule in seen.into_values() {
        let mut old = None;
        for block in blocks(rule.doc) {
            let mut words = block.info.split(' ').skip(1);
            match words.next() {
                Some("old") => old = Some(documents(&block.text).remove(0)),
                Some("bad" | "good") => {
                    let new = documents(&block.text).remove(0);
                    let old = old.take();
                    if new["apiVersion"] == "scheduling.k8s.io/v1beta1" {
                        out.push(Example {
                            rule: rule.id,
                            kind: rule.kind.clone(),
                            old: old.map(|it| whole(it, &rule.kind)),
                            new: whole(new, &rule.kind),
                            text: block.text,
                        });
                    }
                }
                _ => {}
            }
        }
    }
    out
}

/// The example as an object.
fn whole(mut object: Value, kind: &str) -> Value {
    object["apiVersion"] = "scheduling.k8s.io/v1beta1".into();
    object["kind"] = kind.into();
    object["metadata"]["name"] = "example".into();
    object["metadata"]["namespace"] = "default".into();
    object
}

fn collection(object: &Value) -> String {
    let group = "/apis/scheduling.k8s.io";
    match object["kind"].as_str().unwrap() {
        "PriorityClass" => format!("{group}/v1/priorityclasses"),
        kind => format!(
            "{group}/v1beta1/namespaces/default/{}s",
            kind.to_lowercase()
        ),
    }
}

/// The old object as the API server stores it, and the new one with defaults.
fn store_and_default(client: &mut Client, old: &Value, new: &Value) -> (Value, Value) {
    let made = client.create(&collection(old), old).unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    let mut new = new.clone();
    new["metadata"] = made.body["metadata"].clone();
    let is_said = |object: &Value, name: &str| object["spec"].get(name).is_some();
    for (name, value) in made.body["spec"].as_object().unwrap_or(&Map::new()) {
        if !is_said(old, name) && !is_said(&new, name) {
            new["spec"][name] = value.clone();
        }
    }
    (made.body, new)
}

fn findings_by_kind(
    kind: &str,
    new: &Value,
    old: Option<&Value>,
    context: &Context<'_>,
) -> Vec<Finding> {
    match kind {
        "Workload" => findings_by_rules::<v1beta1::Workload>(new, old, context),
        _ => findings_by_rules::<v1beta1::PodGroup>(new, old, context),
    }
}

fn findings_by_rules<T: ValidatedKind>(
    new: &Value,
    old: Option<&Value>,
    context: &Context<'_>,
) -> Vec<Finding> {
    let decoded = |object: &Value| -> T { serde_json::from_value(object.clone()).unwrap() };
    let old = old.map(decoded);
    let mut filled = new.clone();
    for item in T::defaults(&decoded(new), old.as_ref(), context).items() {
        item.apply(&mut filled);
    }
    let new = &decoded(&filled);
    let subject = match &old {
        None => ReviewSubject::Create(new),
        Some(old) => ReviewSubject::Update(Change { old, new }),
    };
    review(&subject, context).denials
}

#[track_caller]
fn compare(example: &Example, answer: &Response, found: &[Finding]) {
    let Example { rule, text, .. } = example;
    // A side that cannot decode an object, or that looks up other objects, names no fields.
    if answer.status < 300 || matches!(answer.status, 400 | 403) {
        let is_refused = answer.status >= 300;
        assert_eq!(
            !found.is_empty(),
            is_refused,
            "{rule}: {text}\n{}\n{found:#?}",
            answer.body
        );
        return;
    }
    let causes = answer.body["details"]["causes"].as_array();
    let causes = causes.unwrap_or_else(|| panic!("{rule}: {text}\n{}", answer.body));
    let cause = |it: &Value| json!([it["field"], it["reason"]]).to_string();
    let mut said_so: Vec<String> = causes.iter().map(cause).collect();
    let finding = |it: &Finding| json!([it.field.text(), it.kind.reason()]).to_string();
    let mut ours: Vec<String> = found.iter().map(finding).collect();
    said_so.sort();
    ours.sort();
    assert_eq!(ours, said_so, "{rule}: {text}\n{}", answer.body["message"]);
}
