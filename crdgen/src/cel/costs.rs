//! The cost of expressions as the API server's own library estimates it.
//!
//! `tests/apiserver/run` writes the estimates. This test checks, without Go, that they belong to the emitted expressions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use crate::admission_policies::policies;
use crate::definitions;
use lockkeeper_policies::settings::Settings;
use lockkeeper_testkit::assert_file_is_current;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The limits of the API server, as in `apiextensions/validation` (per expression and per definition), and at run time
/// of a policy is evaluated, as in `apis/cel`.
const EXPRESSION_MAX: u64 = 10_000_000;
const DEFINITION_MAX: u64 = 100_000_000;
const CALL_MAX: u64 = 1_000_000;

/// The memory that expressions may allocate in one write, in KiB; the rest of a write allocates about 600.
const WRITE_MAX: u64 = 256;

const STALE_HINT: &str = "is out of date; run crdgen/tests/apiserver/run, which needs Go, and then \
                      UPDATE_DOCS=1 cargo test -p lockkeeper-crdgen --lib";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostRecord {
    library: String,
    limits: BTreeMap<String, BTreeMap<String, u64>>,
    writes: Vec<WriteAllocation>,
    costs: Vec<CostEstimate>,
}

/// The memory allocated for the expressions of a definition during one write.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteAllocation {
    write: String,
    definition: String,
    allocations: u64,
    kibibytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CostEstimate {
    definition: String,
    #[serde(default)]
    policy: String,
    place: String,
    expression: String,
    message: String,
    often: u64,
    cost: u64,
    detail: u64,
    #[serde(default)]
    hangs_on: Vec<String>,
    #[serde(default)]
    halved: u64,
}

fn read_costs() -> CostRecord {
    serde_json::from_str(include_str!("costs.json")).unwrap()
}

impl CostEstimate {
    /// The id of the rule, in which each message ends.
    fn rule(&self) -> &str {
        let (_, id) = self.message.rsplit_once('[').expect(&self.message);
        id.strip_suffix(']').expect(&self.message)
    }

    /// All that is counted for it.
    fn sum(&self) -> u64 {
        self.cost + self.detail
    }

    fn is_about_updates(&self) -> &str {
        if self.policy.is_empty() && self.expression.contains("oldSelf") {
            "updates"
        } else {
            ""
        }
    }

    /// The limits that count, with the version left out, in the words of the schema.
    fn limits_text(&self) -> String {
        let each = self.hangs_on.iter().map(|limit| {
            let (place, bound) = limit.split_once(' ').unwrap();
            let last = place.rsplit_once('.').map_or(place, |it| it.1);
            format!("`{last}` {bound}")
        });
        let each: Vec<String> = each.collect();
        if each.is_empty() {
            return "–".to_owned();
        }
        let quotient = 100 * self.halved / self.cost;
        format!("{}: half of one, {quotient} %", each.join(", "))
    }
}

/// The limits and the expressions below a node of a schema.
fn visit(
    node: &Value,
    place: &str,
    limits: &mut BTreeMap<String, u64>,
    expressions: &mut Vec<[String; 3]>,
) {
    for name in ["maxItems", "maxLength", "maxProperties"] {
        if let Some(limit) = node[name].as_u64() {
            limits.insert(format!("{place} {name}"), limit);
        }
    }
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    for rule in node["x-kubernetes-validations"]
        .as_array()
        .iter()
        .copied()
        .flatten()
    {
        expressions.push([
            place.to_owned(),
            text(&rule["rule"]),
            text(&rule["message"]),
        ]);
    }
    for (name, inner) in node["properties"].as_object().iter().copied().flatten() {
        visit(inner, &format!("{place}.{name}"), limits, expressions);
    }
    let inner = [&node["items"], &node["additionalProperties"]];
    for inner in inner.into_iter().filter(|it| it.is_object()) {
        visit(inner, &format!("{place}[]"), limits, expressions);
    }
}

#[test]
fn recorded_costs_match_emitted_expressions() {
    let record = read_costs();
    let (mut limits, mut expressions) = (BTreeMap::new(), BTreeSet::new());
    for definition in definitions(&Settings::default()).unwrap() {
        let name = definition.metadata.name.clone().unwrap();
        let mut found = Vec::new();
        for version in serde_json::to_value(definition).unwrap()["spec"]["versions"]
            .as_array()
            .unwrap()
        {
            let of = limits.entry(name.clone()).or_default();
            let place = version["name"].as_str().unwrap();
            visit(&version["schema"]["openAPIV3Schema"], place, of, &mut found);
        }
        expressions.extend(found.into_iter().map(|it| (name.clone(), it)));
    }
    assert!(record.limits == limits, "costs.json {STALE_HINT}");
    let (in_schemas, in_policies): (Vec<&CostEstimate>, Vec<&CostEstimate>) =
        record.costs.iter().partition(|it| it.policy.is_empty());
    let estimated = in_schemas.iter().map(|estimate| {
        let expression =
            [&estimate.place, &estimate.expression, &estimate.message].map(String::clone);
        (estimate.definition.clone(), expression)
    });
    assert!(
        estimated.collect::<BTreeSet<_>>() == expressions,
        "costs.json {STALE_HINT}"
    );

    // Of the kinds of others there is no schema here to be estimated by.
    let emitted = policies(&BTreeSet::new(), &Settings::default()).unwrap();
    let emitted = emitted.validating.into_iter().flat_map(|(policy, _)| {
        let (name, spec) = (policy.metadata.name.unwrap(), policy.spec.unwrap());
        let about = serde_json::to_value(spec.match_constraints).unwrap();
        let is_own = about["resourceRules"][0]["apiGroups"][0] == lockkeeper_api::GROUP;
        let all = spec.validations.filter(|_| is_own).unwrap_or_default();
        all.into_iter().map(move |it| (name.clone(), it.expression))
    });
    let estimated = in_policies
        .iter()
        .map(|it| (it.policy.clone(), it.expression.clone()));
    assert!(
        estimated.collect::<BTreeSet<_>>() == emitted.collect(),
        "costs.json {STALE_HINT}"
    );
}

#[test]
fn definition_costs_stay_within_limits() {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for estimate in read_costs().costs.iter().filter(|it| it.policy.is_empty()) {
        assert!(
            estimate.cost <= EXPRESSION_MAX && estimate.detail <= EXPRESSION_MAX,
            "{}",
            estimate.message
        );
        *sums.entry(estimate.definition.clone()).or_default() += estimate.sum();
    }
    for (definition, sum) in sums {
        assert!(sum <= DEFINITION_MAX, "{definition}: {sum}");
    }
}

#[test]
fn write_allocations_stay_within_limit() {
    for write in read_costs().writes {
        assert!(
            write.kibibytes <= WRITE_MAX,
            "{}: {} KiB",
            write.write,
            write.kibibytes
        );
    }
}

/// The part of the page below this line is made from `costs.json`.
const PAGE_HEADER: &str = "<!-- Made by crdgen/tests/apiserver/run and UPDATE_DOCS=1 cargo test -p lockkeeper-crdgen --lib -->\n";

#[test]
fn cost_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cel-costs.md");
    let page = fs::read_to_string(&path).unwrap();
    let (written, _) = page
        .split_once(PAGE_HEADER)
        .expect("the page says where the tables begin");
    let made = format!("{written}{PAGE_HEADER}{}", tables(&read_costs()));
    assert_file_is_current(&path, &made, "cargo test -p lockkeeper-crdgen --lib");
}

fn tables(record: &CostRecord) -> String {
    let mut out = format!("\nEstimated by `{}`.\n", record.library);
    let definitions: Vec<&String> = record.limits.keys().collect();
    out.push_str("\n## Sums\n\n| definition | expressions | cost | of what a definition may |\n| --- | --: | --: | --: |\n");
    let of = |name: &str| {
        let its = record
            .costs
            .iter()
            .filter(move |it| it.policy.is_empty() && it.definition == name);
        its.collect::<Vec<_>>()
    };
    for name in &definitions {
        let costs = of(name);
        let sum = costs.iter().map(|it| it.sum()).sum();
        let (count, share) = (costs.len(), share(sum, DEFINITION_MAX));
        writeln!(out, "| {name} | {count} | {} | {share} |", grouped(sum)).unwrap();
    }
    out.push_str(
        "\n## Writes of a day\n\n| write | of | allocations | KiB |\n| --- | --- | --: | --: |\n",
    );
    for row in &record.writes {
        let (allocations, size) = (grouped(row.allocations), grouped(row.kibibytes));
        let WriteAllocation {
            write, definition, ..
        } = row;
        writeln!(out, "| {write} | {definition} | {allocations} | {size} |").unwrap();
    }
    for name in definitions {
        let costs = of(name);
        if costs.is_empty() {
            continue;
        }
        write!(
            out,
            "\n## {name}\n\n| place | rule | about | at most | cost | of what an expression may | its message | hangs on |\n\
             | --- | --- | --- | --: | --: | --: | --: | --- |\n"
        )
        .unwrap();
        for row in costs {
            // The object itself is a child of its version.
            let place = row.place.split_once('.').map_or(".", |(_, place)| place);
            writeln!(
                out,
                "| `{place}` | {} | {} | {} | {} | {} | {} | {} |",
                row.rule(),
                row.is_about_updates(),
                grouped(row.often),
                grouped(row.cost),
                share(row.cost, EXPRESSION_MAX),
                grouped(row.detail),
                row.limits_text(),
            )
            .unwrap();
        }
    }
    out.push_str("\n## In policies\n\n| policy | rule | cost at the limits | of what an evaluation may | hangs on |\n| --- | --- | --: | --: | --- |\n");
    for row in record.costs.iter().filter(|it| !it.policy.is_empty()) {
        let times = if row.cost > CALL_MAX {
            format!("{} times", row.cost / CALL_MAX)
        } else {
            share(row.cost, CALL_MAX)
        };
        let (cost, hangs_on) = (grouped(row.cost), row.limits_text());
        writeln!(
            out,
            "| {} | {} | {cost} | {times} | {hangs_on} |",
            row.policy,
            row.rule()
        )
        .unwrap();
    }
    out
}

/// A share with one decimal; a smaller share is not shown as zero.
fn share(cost: u64, of: u64) -> String {
    let thousandths = (1000 * cost + of / 2) / of;
    if thousandths == 0 && cost > 0 {
        return "< 0.1 %".to_owned();
    }
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
