//! `lockkeeper rules`: lists rules and prints their pages.

mod test;

use crate::user_rules::{self, RuleDirs};
use crate::{Failure, standard_output};
use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};
use lockkeeper_policies::reference::{
    RuleEntry, RuleKind, action_name, entries, unknown_rule_message,
};
use lockkeeper_policies::user_rules::UserRule;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Flags of `lockkeeper rules`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    folders: RuleDirs,

    /// Rule id or name, e.g. CQ007 or lending-limit-above-nominal [default: list all]
    rule: Option<String>,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the fixtures in the pages of user rules
    #[command(after_long_help = test::EXIT_CODES)]
    Test(test::Arguments),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table, or the page of the rule
    #[default]
    Human,
    /// JSON
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (text, code) = match &arguments.command {
        Some(Command::Test(arguments)) => test::run(arguments)?,
        None => (show(arguments)?, 0),
    };
    standard_output::print(text)?;
    Ok(ExitCode::from(code))
}

fn show(arguments: &Arguments) -> Result<String, Failure> {
    let pages = arguments
        .folders
        .pages()
        .map_err(|it| Failure::Usage(it.into()))?;
    let rules = user_rules::compile(&pages).map_err(Failure::Usage)?;
    let own = entries();
    let rows = own
        .iter()
        .map(RuleRow::from_entry)
        .chain(rules.iter().map(RuleRow::from_user_rule));
    let Some(wanted) = &arguments.rule else {
        return Ok(list(&rows.collect::<Vec<_>>(), arguments.output));
    };
    let is_it = |it: &RuleRow| it.id.eq_ignore_ascii_case(wanted) || it.name == *wanted;
    let Some(found) = { rows }.find(is_it) else {
        return Err(Failure::Usage(anyhow!(unknown_rule_message(wanted))));
    };
    Ok(match arguments.output {
        Output::Human => format!("{}\nApplies to: {}\n", found.page, found.kinds_with_actions),
        Output::Json => format_json(&found.json),
    })
}

/// A rule, as it is printed.
struct RuleRow {
    id: String,
    name: String,
    action: &'static str,
    kinds: String,
    /// The kinds with their actions.
    kinds_with_actions: String,
    page: String,
    json: Value,
}

impl RuleRow {
    fn from_entry(entry: &RuleEntry) -> Self {
        let kinds = |shown: fn(&RuleKind) -> String| {
            let kinds: Vec<String> = entry.kinds.iter().map(shown).collect();
            kinds.join(", ")
        };
        Self {
            id: entry.rule.id.to_owned(),
            name: entry.rule.name.to_owned(),
            action: entry.kinds.first().map_or("", |kind| kind.action),
            kinds: kinds(RuleKind::title),
            kinds_with_actions: kinds(|it| format!("{} ({})", it.title(), it.action)),
            page: entry.rule.doc.to_owned(),
            json: entry_json(entry),
        }
    }

    fn from_user_rule(rule: &UserRule) -> Self {
        let action = action_name(rule.action);
        let kinds: Vec<String> = rule.kinds.iter().map(ToString::to_string).collect();
        let with_action = rule.kinds.iter().map(|it| format!("{it} ({action})"));
        let kinds_with_actions = with_action.collect::<Vec<_>>().join(", ");
        let operations: Vec<&str> = rule.operations.iter().map(|it| it.as_str()).collect();
        let of_kinds = rule.kinds.iter().map(|kind| {
            json!({"group": kind.group, "version": kind.version, "kind": kind.kind, "action": action})
        });
        Self {
            id: rule.id.clone(),
            name: rule.name.clone(),
            action,
            kinds: kinds.join(", "),
            kinds_with_actions,
            page: rule.doc.clone(),
            json: json!({
                "id": rule.id, "name": rule.name, "since": null, "kinds": of_kinds.collect::<Vec<_>>(),
                "operations": operations, "layers": ["user"], "covers": [], "page": rule.doc,
            }),
        }
    }
}

fn list(all: &[RuleRow], output: Output) -> String {
    if output == Output::Json {
        let all: Vec<&Value> = all.iter().map(|it| &it.json).collect();
        return format_json(&json!({"rules": all}));
    }
    let width =
        |of: fn(&RuleRow) -> &str| all.iter().map(|it| of(it).len()).max().unwrap_or_default();
    let (ids, names) = (width(|it| &it.id).max(ID_WIDTH), width(|it| &it.name));
    let mut out = format!("{:<ids$} {:<names$} {:<8} KINDS\n", "ID", "NAME", "DEFAULT");
    for RuleRow {
        id,
        name,
        action,
        kinds,
        ..
    } in all
    {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{id:<ids$} {name:<names$} {action:<8} {kinds}");
    }
    out
}

/// The minimum width of the id column.
const ID_WIDTH: usize = 6;

fn entry_json(entry: &RuleEntry) -> Value {
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

fn format_json(value: &Value) -> String {
    format!("{value:#}\n")
}
