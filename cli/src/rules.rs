//! `lockkeeper rules`: what is asked of objects.

use crate::Failure;
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use lockkeeper_policies::reference::{Entry, KindOf, entries, entry, no_such_rule};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{Write as _, stdout};

/// The flags.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The rule, such as CQ007 or lending-limit-above-nominal; without it all are listed
    rule: Option<String>,

    /// How they are printed
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people: a table, or a page
    #[default]
    Human,
    /// As JSON
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let text = match &arguments.rule {
        None => list(arguments.output),
        Some(asked) => {
            let Some(found) = find(asked) else {
                return Err(Failure::Usage(anyhow!(no_such_rule(asked))));
            };
            match arguments.output {
                Output::Human => page(&found),
                Output::Json => printed(&as_json(&found)),
            }
        }
    };
    stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn find(asked: &str) -> Option<Entry> {
    entry(asked).or_else(|| entries().into_iter().find(|it| it.rule.name == asked))
}

fn list(output: Output) -> String {
    let all = entries();
    if output == Output::Json {
        let all: Vec<Value> = all.iter().map(as_json).collect();
        return printed(&json!({"rules": all}));
    }
    let width = all.iter().map(|it| it.rule.name.len()).max();
    let width = width.unwrap_or_default();
    let mut out = format!("{:<6} {:<width$} {:<8} KINDS\n", "ID", "NAME", "DEFAULT");
    for it in all {
        let kinds: Vec<String> = it.kinds.iter().map(KindOf::title).collect();
        let action = it.kinds.first().map_or("", |kind| kind.action);
        let (id, name) = (it.rule.id, it.rule.name);
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{id:<6} {name:<width$} {action:<8} {}",
            kinds.join(", ")
        );
    }
    out
}

/// A page, with the kinds that it holds for.
fn page(entry: &Entry) -> String {
    let kinds = entry.kinds.iter();
    let kinds: Vec<String> = kinds
        .map(|it| format!("{} ({})", it.title(), it.action))
        .collect();
    format!("{}\nHolds for: {}\n", entry.rule.doc, kinds.join(", "))
}

fn as_json(entry: &Entry) -> Value {
    let rule = &entry.rule;
    let kinds = entry.kinds.iter();
    let kinds: Vec<Value> = kinds
        .map(|it| json!({"group": it.group, "kind": it.kind, "action": it.action}))
        .collect();
    let operations: Vec<&str> = rule.operations.iter().map(|it| it.as_str()).collect();
    let layers: Vec<String> = rule.layers.iter().map(ToString::to_string).collect();
    json!({
        "id": rule.id, "name": rule.name, "since": rule.since, "kinds": kinds,
        "operations": operations, "layers": layers, "covers": rule.covers, "page": rule.doc,
    })
}

fn printed(value: &Value) -> String {
    format!("{value:#}\n")
}
