//! `lockkeeper check`: the answers of the API server and the webhook, without either.

mod excuses;
mod kinds;
mod lines;
mod report;
mod source;

use crate::user_rules::Folders;
use crate::{Failure, configuration};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use excuses::Excuses;
use kinds::Known;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::reference;
use report::{Report, Told};
use source::{Document, Source};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  nothing was found that --fail-on names
  1  something was found
  2  the command line or the configuration is wrong, or something cannot be read";

/// The flags.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Files and folders with YAML or JSON; `-` is standard input
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    /// How findings are printed
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    /// What makes the exit code 1
    #[arg(long, value_enum, default_value_t)]
    fail_on: Severity,

    /// Only these rules, such as CQ007; may be given several times
    #[arg(long, value_delimiter = ',')]
    select: Vec<String>,

    /// Not these rules; may be given several times
    #[arg(long, value_delimiter = ',')]
    ignore: Vec<String>,

    /// The configuration file of the server, for its actions and feature gates
    #[arg(long)]
    config: Option<PathBuf>,

    #[command(flatten)]
    rules: Folders,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people: the place, the line, and what to do
    #[default]
    Human,
    /// As JSON
    Json,
    /// As annotations of a GitHub workflow
    Github,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Severity {
    /// It would be accepted, with a warning
    Warning,
    /// It would be refused
    #[default]
    Error,
}

/// Checks, and prints what was found. The exit code says whether there was anything.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (text, code) = check(arguments)?;
    stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::from(code))
}

fn check(arguments: &Arguments) -> Result<(String, u8), Failure> {
    let read = configuration::read(arguments.config.as_deref(), &arguments.rules);
    let loaded = read.map_err(Failure::Usage)?;
    let user_rules = Arc::clone(&loaded.settings.user_rules);
    for id in arguments.select.iter().chain(&arguments.ignore) {
        if reference::entry(id).is_none() && user_rules.find(id).is_none() {
            return Err(Failure::Usage(anyhow!(reference::no_such_rule(id))));
        }
    }
    let settings = kinds::settings(loaded.config, user_rules);
    let settings = settings.map_err(|error| Failure::Usage(error.into()))?;
    let read = source::read(&arguments.paths);
    let world = world(&read.sources);
    let known = Known::new()?;
    let mut report = Report::new(arguments.output);
    let mut excuses = Excuses::default();
    report.unreadable(read.problems);
    for source in &read.sources {
        report.files += 1;
        for document in &source.documents {
            match known.judge(&document.value, &settings, &world) {
                None => report.skipped += 1,
                Some(judgement) => {
                    report.objects += 1;
                    excuses.take(&judgement.excused);
                    tell(source, document, judgement.found, arguments, &mut report);
                }
            }
        }
    }
    report.exceptions(&excuses.say(&settings, arguments.config.as_deref()));
    let code = report.code(arguments.fail_on);
    Ok((report.finish(), code))
}

fn tell(
    source: &Source,
    document: &Document,
    findings: Vec<(Severity, lockkeeper_policies::finding::Finding)>,
    arguments: &Arguments,
    report: &mut Report,
) {
    let names = |list: &[String], id: &str| list.iter().any(|it| it.eq_ignore_ascii_case(id));
    for (severity, finding) in findings {
        let is_left_out = names(&arguments.ignore, &finding.rule)
            || !(arguments.select.is_empty() || names(&arguments.select, &finding.rule));
        if !is_left_out {
            let place = lines::place(&source.text, document, &finding.field.pointer());
            report.tell(&Told {
                source,
                document,
                place,
                severity,
                finding: &finding,
            });
        }
    }
}

/// What the given objects know of each other. What is not among them may exist all the same.
fn world(sources: &[Source]) -> Index {
    let mut index = Index::default();
    for source in sources {
        for document in &source.documents {
            // What cannot be read is told where it is judged.
            let _ = facts::observe(&mut index, &document.value);
        }
    }
    index
}

#[cfg(test)]
mod tests;
