//! A real API server returns the same results for the CEL form of the rules as the rules in Rust, for the schemas of
//! lockkeeper's kinds and for admission policies, on creation and on update.
//!
//! `LOCKKEEPER_DRY_RUNS` is the number of objects for each rule.

#[path = "../../../crdgen/tests/agreement/generator.rs"]
mod generator;
#[path = "../../../crdgen/tests/agreement/rules.rs"]
mod rules;

use std::env;

use lockkeeper_policies::rule::RuleInfo;
use serde_json::Value;

use self::generator::{examples, random_change};
use self::rules::{RustRule, Schema, version};
use super::Scenario;
use crate::client::{Client, Response};
use crate::fixture::{self, Fixture};
use crate::lockkeeper::{self, Protocol};
use crate::objects::collection;
use crate::wait;
use lockkeeper_testkit::Rng;

pub fn scenarios() -> Vec<Scenario> {
    let name = "schemas and admission policies agree with the rules";
    vec![
        Scenario::new(name, cel_rules_match_native_rules)
            .only(Protocol::Http1)
            .since(34),
    ]
}

/// A policy without a rule: it permits some changes only to the controller.
const GUARD: &str = "workloads.guard.lockkeeper.dev";

/// The number of objects for each rule, unless the environment sets it. A nightly run has more: with 200, this was the slowest
/// trial.
const CASES_PER_RULE_DEFAULT: usize = 80;

/// An update of an object of a rule's kind, and the result of the rule.
struct UpdateCase {
    rule: RuleInfo,
    /// Whether the schema contains the complete rule. Expressions over the cost limit are only in policies.
    is_for_schema: bool,
    new: Value,
    /// The stored object.
    old: Value,
    expected: ExpectedResult,
}

/// The result of a rule for an update.
struct ExpectedResult {
    /// Whether the new object could be created.
    is_accepted: bool,
    /// Whether the old object could be created.
    was_accepted: bool,
    /// Whether the update is allowed.
    is_update_allowed: bool,
}

/// The number of requests, and the responses that differ from the rules.
#[derive(Default)]
struct AgreementTally {
    requests: usize,
    rejected: usize,
    disagreements: Vec<String>,
}

impl AgreementTally {
    fn record(
        &mut self,
        is_accepted: bool,
        expected: bool,
        case: &UpdateCase,
        what: &str,
        answer: &Response,
    ) {
        self.requests += 1;
        self.rejected += usize::from(!is_accepted);
        if is_accepted != expected {
            let text = format!(
                "{} {what}: {}\nfrom {}\nanswer {answer:?}",
                case.rule.id, case.new, case.old
            );
            self.disagreements.push(text);
        }
    }

    fn report(&self, what: &str) {
        println!(
            "{what}: {} requests, {} rejected, {} disagreements",
            self.requests,
            self.rejected,
            self.disagreements.len()
        );
        for text in self.disagreements.iter().take(3) {
            println!("{text}");
        }
        assert!(self.disagreements.is_empty(), "{what} and the rules differ");
        assert!(
            self.rejected * 20 > self.requests,
            "{what}: hardly any object was rejected"
        );
    }
}

fn cel_rules_match_native_rules(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.without_webhook_and_rules();
    fixture::sweep(&kubectl);
    let mut client = stage.cluster().client();
    // Rules with the action `warn` are in no schema, and policies return warnings for them.
    let soft = fixture::warn_only_config(&stage.new_folder());
    let policies = lockkeeper::output(&["crds", "policies", "--config", soft.to_str().unwrap()]);
    let policies = policies_of_rules(&policies);
    kubectl
        .apply(&policies, &["--server-side"])
        .expect_accepted_without_warning();
    let cases: Vec<UpdateCase> = rules::rules().iter().flat_map(cases).collect();
    wait_until_enforced(&mut client, &cases);

    let (mut made, mut updated) = (AgreementTally::default(), AgreementTally::default());
    let mut kept: Vec<UpdateCase> = Vec::new();
    for mut case in cases {
        let answer = create(&mut client, &case.new, true);
        made.record(
            !has_warning(&answer, &case),
            case.expected.is_accepted,
            &case,
            "is made",
            &answer,
        );
        case.old = store(&mut client, &case.old);
        let answer = replace(&mut client, &case);
        let is_accepted = !has_warning(&answer, &case);
        // A policy does not count repeated mistakes, and does not know their positions in lists without keys.
        let is_same = is_accepted == case.expected.is_update_allowed
            || (!case.expected.is_accepted && !case.expected.was_accepted);
        let expected = if is_same {
            is_accepted
        } else {
            case.expected.is_update_allowed
        };
        updated.record(is_accepted, expected, &case, "is changed", &answer);
        kept.push(case);
    }
    made.report("admission policies, made");
    updated.report("admission policies, changed");
    kubectl
        .with_input(&["delete", "-f", "-"], &policies)
        .expect_accepted();

    schemas_match_native_rules(stage, &mut client, &kept);
    for kind in [
        "ClusterQueue",
        "Cohort",
        "LocalQueue",
        "ResourceFlavor",
        "Workload",
    ] {
        // Deletes the collection at once: single deletes would take as long as all dry runs.
        client.delete(&collection(kind)).unwrap();
    }
}

/// Writes the cases with the CEL rules of the schemas alone: no webhook and no admission policy.
fn schemas_match_native_rules(stage: &mut Fixture, client: &mut Client, cases: &[UpdateCase]) {
    stage.without_webhook();
    let (mut made, mut updated) = (AgreementTally::default(), AgreementTally::default());
    for case in cases {
        if !case.is_for_schema {
            continue;
        }
        // The old object is stored under the same name.
        let mut new = case.new.clone();
        new["metadata"]["name"] = "another".into();
        let answer = create(client, &new, true);
        made.record(
            !is_rejected_by(&answer, case),
            case.expected.is_accepted,
            case,
            "is made",
            &answer,
        );
        let answer = replace(client, case);
        let is_accepted = !is_rejected_by(&answer, case);
        // The API server validates a list again if its items have no keys.
        let is_validated_again =
            case.expected.is_update_allowed && !is_accepted && !case.expected.is_accepted;
        let expected = case.expected.is_update_allowed && !is_validated_again;
        updated.record(is_accepted, expected, case, "is changed", &answer);
    }
    made.report("schemas, made");
    updated.report("schemas, changed");
}

/// The policies of rules: neither those that change objects, nor the one that permits changes only to the controller.
fn policies_of_rules(policies: &str) -> String {
    assert!(policies.contains(GUARD), "{policies}");
    let is_rule = |it: &&str| !it.contains("kind: MutatingAdmissionPolicy") && !it.contains(GUARD);
    let rules: Vec<&str> = policies.split("---\n").filter(is_rule).collect();
    rules.join("---\n")
}

/// Updates of objects of a rule's kind, near the limits of the rule. Pods are left out: most of their fields are immutable.
fn cases(rule: &RuleInfo) -> Vec<UpdateCase> {
    let given = env::var("LOCKKEEPER_DRY_RUNS").ok();
    let count = given.map_or(CASES_PER_RULE_DEFAULT, |it| it.parse().expect("a number"));
    let mut out = Vec::new();
    if rule.group != lockkeeper_api::GROUP {
        return out;
    }
    let schema = Schema::for_rule(rule);
    let check = RustRule::new(rule);
    let seeds = examples(rule.doc, version(rule), &rule.kind);
    let mut draw = Rng::new(11);
    let mut before: Option<Value> = None;
    while out.len() < count {
        let seed = match &before {
            Some(object) if draw.below(2) == 0 => object.clone(),
            _ => seeds[draw.below(seeds.len())].clone(),
        };
        let mut new = random_change(&seed, &schema.plain, &mut draw);
        let mut old = seed;
        let name = format!(
            "{}-{}-{}",
            rule.id.to_lowercase(),
            rule.kind.to_lowercase(),
            out.len()
        );
        for object in [&mut new, &mut old] {
            schema.shape.apply_defaults(object);
            object["metadata"]["name"] = name.clone().into();
        }
        if !schema.has_valid_shape(&new) || !schema.has_valid_shape(&old) {
            continue;
        }
        let results = (
            check.accepts(&new, None),
            check.accepts(&old, None),
            check.accepts(&new, Some(&old)),
        );
        let (Some(is_accepted), Some(was_accepted), Some(is_kept)) = results else {
            continue;
        };
        before = Some(new.clone());
        out.push(UpdateCase {
            rule: rule.clone(),
            is_for_schema: schema.of_rule.is_some() && schema.is_whole,
            new,
            old,
            expected: ExpectedResult {
                is_accepted,
                was_accepted,
                is_update_allowed: is_kept,
            },
        });
    }
    out
}

/// Waits until policies are evaluated: the API server loads them a moment after they are stored.
#[track_caller]
fn wait_until_enforced(client: &mut Client, cases: &[UpdateCase]) {
    let mut seen: Vec<&str> = Vec::new();
    for case in cases {
        let is_new = !seen.contains(&case.rule.kind.as_str());
        if case.expected.is_accepted || !is_new {
            continue;
        }
        seen.push(&case.rule.kind);
        let is_enforced = || Ok(has_warning(&create(client, &case.new, true), case).then_some(()));
        let late = || format!("policies for {} do not hold", case.rule.kind);
        wait::until(is_enforced, late).unwrap_or_else(|e| panic!("{e}"));
    }
}

fn create(client: &mut Client, object: &Value, is_dry: bool) -> Response {
    let dry = if is_dry { "?dryRun=All" } else { "" };
    let path = format!("{}{dry}", collection(object["kind"].as_str().unwrap()));
    let mut object = object.clone();
    object["metadata"]["namespace"] = Value::Null;
    client.create(&path, &object).unwrap()
}

/// Stores an object with its status, which a creation ignores.
#[track_caller]
fn store(client: &mut Client, object: &Value) -> Value {
    let made = create(client, object, false);
    assert_eq!(made.status, 201, "{made:?}");
    let mut stored = made.body;
    if object["status"].is_null() {
        return stored;
    }
    stored["status"] = object["status"].clone();
    let [kind, name] =
        [&object["kind"], &object["metadata"]["name"]].map(|it| it.as_str().unwrap());
    let path = format!("{}/{name}/status", collection(kind));
    let answer = client.replace(&path, &stored).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

fn replace(client: &mut Client, case: &UpdateCase) -> Response {
    let name = case.old["metadata"]["name"].as_str().unwrap();
    let path = format!("{}/{name}?dryRun=All", collection(&case.rule.kind));
    let mut object = case.new.clone();
    object["metadata"] = case.old["metadata"].clone();
    client.replace(&path, &object).unwrap()
}

/// Whether a response has the rule's warning. The object must have a valid schema.
#[track_caller]
fn has_warning(answer: &Response, case: &UpdateCase) -> bool {
    assert!(
        [200, 201].contains(&answer.status),
        "{}: {answer:?}\n{}",
        case.rule.id,
        case.new
    );
    let id = format!("[{}]", case.rule.id);
    answer.warnings.iter().any(|it| it.contains(&id))
}

/// Whether a response is a rejection by the rule. Other rules may reject the object as well.
#[track_caller]
fn is_rejected_by(answer: &Response, case: &UpdateCase) -> bool {
    assert!([200, 201, 422].contains(&answer.status), "{answer:?}");
    let id = format!("[{}]", case.rule.id);
    answer.status == 422 && answer.body["message"].as_str().unwrap().contains(&id)
}
