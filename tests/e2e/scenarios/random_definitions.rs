//! lockkeeper and a real API server answer the same for random definitions and random objects of their kinds.
//!
//! Each definition is created, and the response is compared. If it is accepted, random objects are created as dry runs,
//! and stored objects are updated as dry runs, before and after the schema is tightened.
//!
//! `LOCKKEEPER_RANDOM_SEED` is the seed of the first definition, and `LOCKKEEPER_RANDOM_DEFINITIONS` the number of
//! definitions. `LOCKKEEPER_RANDOM_CASES` names a file for the cases that differ.

mod branches;
mod cases;
#[path = "../../conformance/crdcheck/compare.rs"]
mod compare;
mod conditions;
mod definitions;
mod expressions;
mod mutations;
mod place;
mod rules;
mod schemas;
mod tally;
mod terms;
mod texts;
mod values;

use std::env;
use std::io;

use lockkeeper_crd_schema::crd::Schema;
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

use self::cases::CaseRequest;
use self::definitions::{LABEL, PROBE, PROBE_TIGHTENED};
use self::tally::Tally;
use super::Scenario;
use crate::client::{Client, Response};
use crate::fixture::Fixture;
use crate::lockkeeper::Protocol;
use crate::wait;

pub fn scenarios() -> Vec<Scenario> {
    let name = "random definitions and objects get the answers of the API server";
    vec![
        Scenario::new(name, answers_match_api_server)
            .only(Protocol::Http1)
            .since(37),
    ]
}

/// The collection of definitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The number of definitions, unless the environment sets it.
const DEFINITIONS_DEFAULT: u64 = 60;

/// Definitions that are installed at the same time: the API server takes a moment to serve each.
const BATCH: u64 = 20;

/// Objects of each definition that are created as a dry run.
const CREATIONS: usize = 12;

/// Updates of each stored object, before and after the schema is tightened.
const UPDATES: usize = 4;

/// An installed definition.
struct Installed {
    seed: u64,
    definition: Value,
    schema: Schema,
    rng: Rng,
    /// The names of stored objects.
    stored: Vec<String>,
}

fn answers_match_api_server(stage: &mut Fixture, _: Protocol) {
    stage.without_webhook();
    let number = |name: &str, default: u64| {
        let given = env::var(name).ok();
        given.map_or(default, |it| it.parse().expect("a number"))
    };
    let first = number("LOCKKEEPER_RANDOM_SEED", 1);
    let count = number("LOCKKEEPER_RANDOM_DEFINITIONS", DEFINITIONS_DEFAULT);
    let mut run = Run {
        client: stage.cluster().client(),
        tally: Tally::default(),
    };
    let mut installed = 0;
    let mut seed = first;
    while seed < first + count {
        let end = (seed + BATCH).min(first + count);
        installed += run.compare_batch(seed..end);
        seed = end;
    }
    run.wait_until_deleted();
    println!("random definitions: {installed} of {count} installed");
    assert!(installed * 3 > count, "most definitions are rejected");
    run.tally.report();
}

/// A client with the numbers of its requests.
struct Run {
    client: Client,
    tally: Tally,
}

impl Run {
    /// Compares all answers for the definitions of these seeds; returns the number of accepted definitions.
    fn compare_batch(&mut self, seeds: std::ops::Range<u64>) -> u64 {
        let installed: Vec<Installed> = seeds.filter_map(|it| self.install(it)).collect();
        let mut installed = installed;
        for it in &installed {
            self.wait_until_served(&it.definition);
        }
        for it in &mut installed {
            self.compare_creations(it);
            self.store_objects(it);
            self.compare_updates(it);
        }
        let tightened: Vec<&mut Installed> = installed
            .iter_mut()
            .filter(|it| !it.stored.is_empty())
            .collect();
        let tightened: Vec<&mut Installed> = tightened
            .into_iter()
            .filter_map(|it| self.tighten(it).then_some(it))
            .collect();
        for it in tightened {
            self.wait_until_tightened(&it.definition);
            self.compare_updates(it);
        }
        let path = format!("{DEFINITIONS}?labelSelector={LABEL}%3Drandom");
        let answer = self.send(|it| it.delete(&path)).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        u64::try_from(installed.len()).unwrap()
    }

    /// Sends a request, and sends it again if the API server closed the connection before it. The API server also closes
    /// the connection if it panics.
    fn send(
        &mut self,
        request: impl Fn(&mut Client) -> io::Result<Response>,
    ) -> io::Result<Response> {
        request(&mut self.client).or_else(|_| request(&mut self.client))
    }

    /// Creates the definition of a seed; none if the API server rejects it.
    fn install(&mut self, seed: u64) -> Option<Installed> {
        let definition = definitions::definition(seed);
        let path = format!("{DEFINITIONS}?fieldValidation=Strict");
        let Ok(response) = self.send(|it| it.create(&path, &definition)) else {
            self.tally.add_unanswered(&definition);
            return None;
        };
        let request = CaseRequest {
            seed,
            definition: None,
            object: &definition,
            old: None,
            is_status: false,
            field_validation: "Strict",
        };
        self.tally.add(cases::case(&request, &response), None);
        if response.status != 201 {
            return None;
        }
        let schema = Schema::from_crd(&definition, "v1").unwrap_or_else(|e| panic!("{seed}: {e}"));
        Some(Installed {
            seed,
            definition,
            schema,
            rng: Rng::new(seed ^ 0x5eed),
            stored: Vec::new(),
        })
    }

    fn wait_until_served(&mut self, definition: &Value) {
        let path = definitions::collection(definition);
        let path = format!("{path}?limit=1");
        let client = &mut self.client;
        // The response for an unknown path is plain text, which the client does not read.
        let is_served = || {
            let status = client.get(&path).map(|it| it.status);
            Ok(matches!(status, Ok(200)).then_some(()))
        };
        wait::until(is_served, || format!("{path} is not served"))
            .unwrap_or_else(|e| panic!("{e}"));
    }

    fn compare_creations(&mut self, it: &mut Installed) {
        for number in 0..CREATIONS {
            let mut object = definitions::object(&it.definition, "created", &mut it.rng);
            if number % 2 == 1 {
                mutations::mutate(
                    &mut object,
                    definitions::schema(&it.definition),
                    &mut it.rng,
                );
            }
            let field_validation = *it.rng.pick(&["Strict", "Strict", "Warn"]);
            self.create(it, &object, field_validation, "&dryRun=All");
        }
    }

    /// Creates an object and compares the answer; returns whether it is accepted.
    fn create(
        &mut self,
        it: &Installed,
        object: &Value,
        field_validation: &'static str,
        parameters: &str,
    ) -> bool {
        let path = definitions::collection(&it.definition);
        let path = format!("{path}?fieldValidation={field_validation}{parameters}");
        let response = self.send(|it| it.create(&path, object)).unwrap();
        let request = CaseRequest {
            seed: it.seed,
            definition: Some(&it.definition),
            object,
            old: None,
            is_status: false,
            field_validation,
        };
        let case = cases::case(&request, &response);
        self.tally.add(case, Some(&it.schema));
        response.status == 201
    }

    /// Stores up to two objects.
    fn store_objects(&mut self, it: &mut Installed) {
        for number in 0..6 {
            let name = format!("stored-{number}");
            let object = definitions::object(&it.definition, &name, &mut it.rng);
            if self.create(it, &object, "Warn", "") {
                it.stored.push(name);
            }
            if it.stored.len() == 2 {
                return;
            }
        }
    }

    fn compare_updates(&mut self, it: &mut Installed) {
        let collection = definitions::collection(&it.definition);
        for name in it.stored.clone() {
            let path = format!("{collection}/{name}");
            let stored = self.send(|it| it.get(&path)).unwrap().body;
            let old = cases::without_system_fields(&stored);
            for number in 0..UPDATES {
                let mut object = old.clone();
                if number > 0 {
                    mutations::mutate(
                        &mut object,
                        definitions::schema(&it.definition),
                        &mut it.rng,
                    );
                } else {
                    object["metadata"]["labels"] = json!({"a": "b"});
                }
                self.update(it, &path, &stored, &old, &object);
            }
        }
    }

    fn update(
        &mut self,
        it: &mut Installed,
        path: &str,
        stored: &Value,
        old: &Value,
        object: &Value,
    ) {
        let version = &it.definition["spec"]["versions"][0];
        let is_status = version["subresources"]["status"].is_object() && it.rng.one_in(3);
        let field_validation = *it.rng.pick(&["Strict", "Warn"]);
        let subresource = if is_status { "/status" } else { "" };
        let path = format!("{path}{subresource}?dryRun=All&fieldValidation={field_validation}");
        let mut sent = object.clone();
        sent["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        let response = self.send(|it| it.replace(&path, &sent)).unwrap();
        let request = CaseRequest {
            seed: it.seed,
            definition: Some(&it.definition),
            object,
            old: Some(old),
            is_status,
            field_validation,
        };
        let case = cases::case(&request, &response);
        self.tally.add(case, Some(&it.schema));
    }

    /// Replaces the definition with a tightened one; returns whether the API server accepts it.
    fn tighten(&mut self, it: &mut Installed) -> bool {
        let path = format!(
            "{DEFINITIONS}/{}",
            it.definition["metadata"]["name"].as_str().unwrap()
        );
        let stored = self.send(|it| it.get(&path)).unwrap().body;
        let tightened = definitions::tightened(&it.definition, &mut it.rng);
        let mut object = cases::without_system_fields(&stored);
        object["spec"]["versions"] = tightened["spec"]["versions"].clone();
        let mut sent = object.clone();
        sent["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        let path = format!("{path}?fieldValidation=Strict");
        let response = self.send(|it| it.replace(&path, &sent)).unwrap();
        let old = cases::without_system_fields(&stored);
        let request = CaseRequest {
            seed: it.seed,
            definition: None,
            object: &object,
            old: Some(&old),
            is_status: false,
            field_validation: "Strict",
        };
        self.tally.add(cases::case(&request, &response), None);
        if response.status != 200 {
            return false;
        }
        it.schema =
            Schema::from_crd(&tightened, "v1").unwrap_or_else(|e| panic!("{}: {e}", it.seed));
        it.definition = tightened;
        true
    }

    /// Waits until the API server uses the tightened schema: it allows another value of the probe.
    fn wait_until_tightened(&mut self, definition: &Value) {
        let path = definitions::collection(definition);
        let path = format!("{path}?dryRun=All");
        let mut object = definitions::empty_object(definition, "probe");
        object[PROBE] = PROBE_TIGHTENED.into();
        let client = &mut self.client;
        let is_tightened = || {
            let answer = client.create(&path, &object).map_err(|e| e.to_string())?;
            let causes = answer.body["details"]["causes"].as_array();
            let mut causes = causes.into_iter().flatten();
            // Rules can name the field for other reasons.
            let is_old =
                causes.any(|it| it["field"] == PROBE && it["reason"] == "FieldValueNotSupported");
            Ok((!is_old).then_some(()))
        };
        wait::until(is_tightened, || format!("{path} uses the old schema"))
            .unwrap_or_else(|e| panic!("{e}"));
    }

    fn wait_until_deleted(&mut self) {
        let path = format!("{DEFINITIONS}?labelSelector={LABEL}%3Drandom");
        let client = &mut self.client;
        let is_deleted = || {
            let list = client.get(&path).map_err(|e| e.to_string())?.body;
            Ok((list["items"] == json!([])).then_some(()))
        };
        wait::until(is_deleted, || "definitions remain".to_owned())
            .unwrap_or_else(|e| panic!("{e}"));
    }
}
