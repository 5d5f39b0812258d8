//! `lockkeeper check`: the answers of the API server and the webhook, without either.

mod block_parse;
mod checker;
mod cluster_audit;
mod cluster_list;
mod conversion;
mod exception_usage;
mod existing_objects;
mod fast_parse;
mod fix;
mod kinds;
mod kueue_version;
mod policy_report;
mod preemption_loops;
mod printer;
mod progress;
mod report;
mod rule_selection;
mod source;
mod source_cache;
mod spans;
mod worker_pool;

use crate::user_rules::RuleDirs;
use crate::{Failure, configuration};
use anstream::AutoStream;
use checker::Checker;
use clap::{Args, ColorChoice, ValueEnum};
use conversion::{ConversionArguments, Converter, PriorityClassValues};
use fix::{FixSummary, Fixer};
use kinds::KindRegistry;
use kueue_version::KueueVersion;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::preemption_loops as loop_rule;
use lockkeeper_policies::settings::Settings;
use preemption_loops::LoopSearchInput;
use printer::Printer;
use progress::Progress;
use report::{CheckedFile, Palette, Tally};
use rule_selection::RuleSelection;
use source::{Input, ParsedSource};
use source_cache::SourceCache;
use std::io::{BufWriter, Write, stderr, stdout};
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
    #[arg(required_unless_present = "stored", conflicts_with = "stored")]
    paths: Vec<PathBuf>,

    /// How findings are printed
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    /// Whether what is for people is coloured; `auto` is on a terminal, unless `NO_COLOR` is set
    #[arg(long, value_name = "WHEN", default_value_t)]
    color: ColorChoice,

    /// What makes the exit code 1
    #[arg(long, value_enum, default_value_t)]
    fail_on: Severity,

    /// Only these rules, such as CQ007, or CQ for all about ClusterQueues; may be given several times
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    select: Vec<String>,

    /// Not these rules or groups of rules; may be given several times
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    ignore: Vec<String>,

    /// The configuration file of the server, for its actions and feature gates
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    rules: RuleDirs,

    #[command(flatten)]
    existing: existing_objects::ExistingObjects,

    #[command(flatten)]
    conversion: ConversionArguments,

    /// The version of Kueue whose preemption is played for Kueue's queues, such as 0.14 or v0.10.2, with the mistakes that
    /// it had; as Kueue is today by default
    #[arg(long, value_name = "VERSION")]
    kueue_version: Option<KueueVersion>,

    /// First put right what has one obvious correction (misspelt fields, and values in the wrong case), and write what
    /// would be filled in. Comments and layout stay
    #[arg(long)]
    fix: bool,

    /// Print what --fix would change, and check nothing
    #[arg(long)]
    diff: bool,

    /// Ask each CEL expression of a schema in two ways, fast and by the crate for Kubernetes' CEL, and tell as an error
    /// what they disagree about; ask the rules of lockkeeper's kinds in Rust and in CEL likewise
    #[arg(long)]
    verify_cel: bool,

    /// The address that SARIF finds the pages of rules below, such as that of docs/rules in a repository
    #[arg(long, value_name = "URL")]
    pages: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people: the place, the line, and what to do
    #[default]
    Human,
    /// As JSON
    Json,
    /// As SARIF 2.1.0, for services that show what analyzers find
    Sarif,
    /// As JUnit XML, for what reads the reports of tests
    Junit,
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
    let code = check(arguments, &mut BufWriter::new(stdout()))?;
    Ok(ExitCode::from(code))
}

fn check(arguments: &Arguments, out: &mut (impl Write + Send)) -> Result<u8, Failure> {
    let read = configuration::read(arguments.config.as_deref(), &arguments.rules);
    let loaded = read.map_err(Failure::Usage)?;
    let user_rules = Arc::clone(&loaded.settings.user_rules);
    let choice = RuleSelection::new(&arguments.select, &arguments.ignore, &user_rules);
    let choice = choice.map_err(Failure::Usage)?;
    let config = loaded.config.clone();
    let settings = kinds::settings(loaded.config, user_rules, &choice);
    let settings = settings.map_err(|error| Failure::Usage(error.into()))?;
    if arguments.existing.stored {
        return cluster_audit::run(arguments, &config, choice, settings, out);
    }
    let inputs = source::list_inputs(&arguments.paths);
    let (mut world, unreadable) = existing_objects::load_index(&arguments.existing)?;
    if arguments.fix || arguments.diff {
        let mender = fixer(&inputs, world.clone(), settings.clone(), &choice)?;
        if arguments.diff {
            return print_diff(&mender, &inputs, out);
        }
        print_fix_summary(fix::write_fixes(&mender, &inputs)?);
    }
    let format = report::format(arguments.output, report_settings(arguments));
    let mut printer = Printer::new(&*format, out, inputs.len().saturating_mul(2));
    if arguments.conversion.is_stdout() {
        printer.mute();
    }
    printer.write(&format.head());

    for judged in unreadable {
        printer.write_file(&format.file(&judged), Tally::from_checked_file(&judged));
    }
    let mut converter = arguments.conversion.converter();
    let wanted = CollectOptions {
        facts: choice.needs_other_objects(),
        preemption_loops: choice.includes(loop_rule::RULE),
    };
    let progress = &mut printer.progress;
    let (shelf, herd) = collect_context(&inputs, wanted, &mut converter, &mut world, progress);
    let circles = if wanted.preemption_loops {
        herd.search(&config, arguments.kueue_version)
    } else {
        preemption_loops::LoopFindings::new()
    };
    let judge = Checker::new(settings, world, choice, circles)?
        .with_cel_cross_check(arguments.verify_cel)?;
    let work = |at: usize| {
        let input = inputs.get(at)?;
        let read = shelf.take(at).unwrap_or_else(|| converter.read(input));
        let read = read.map(|source| converter.drop_conflicting_classes(source));
        let part = read
            .as_ref()
            .map_or(Ok(String::new()), |it| converter.yaml(it));
        let judged = CheckedFile {
            name: input.name.clone(),
            outcome: read.map(|source| judge.check_file(at, source)),
        };
        Some((
            format.file(&judged),
            Tally::from_checked_file(&judged),
            part,
        ))
    };
    let mut yaml = Ok(String::new());
    worker_pool::run_ordered(
        inputs.len(),
        worker_pool::thread_count(),
        work,
        |_, done| {
            if let Some((text, tally, part)) = done {
                printer.write_file(&text, tally);
                conversion::append_yaml(&mut yaml, part);
            }
            printer.progress.step();
        },
    );
    printer.write_exceptions(judge.settings(), arguments.config.as_deref());
    let code = printer.finish()?.exit_code(arguments.fail_on);
    arguments.conversion.write(&yaml?, out)?;
    Ok(code)
}

/// What is known when files are put right: of other objects what the files themselves say, and what is around them.
fn fixer(
    inputs: &[Input],
    mut world: Index,
    settings: Settings,
    choice: &RuleSelection,
) -> Result<Fixer, Failure> {
    // Files are put right as what they are.
    let mut converter = Converter::default();
    let mut progress = Progress::new(inputs.len());
    let wanted = CollectOptions {
        facts: true,
        preemption_loops: false,
    };
    collect_context(inputs, wanted, &mut converter, &mut world, &mut progress);
    Ok(Fixer {
        kinds: KindRegistry::new(choice)?,
        index: world,
        settings,
    })
}

/// Says what was put right. Who closed standard error does not want to know.
fn print_fix_summary(fixed: FixSummary) {
    let files = report::pluralize(fixed.files, "file");
    let (corrected, filled) = (fixed.typos_fixed, fixed.defaults_added);
    if fixed.files > 0 {
        let _ = writeln!(
            stderr(),
            "{corrected} corrected and {filled} filled in, in {files}"
        );
    }
}

/// Prints what would be put right: 1 if there is anything, 2 if something cannot be read.
fn print_diff(
    mender: &Fixer,
    inputs: &[Input],
    out: &mut (impl Write + Send),
) -> Result<u8, Failure> {
    let fixed = fix::print_fixes(mender, inputs, out)?;
    Ok(if fixed.unreadable > 0 {
        let files = report::pluralize(fixed.unreadable, "file");
        let _ = writeln!(stderr(), "{files} not read; without --diff they are named");
        2
    } else {
        u8::from(fixed.files > 0)
    })
}

fn report_settings(arguments: &Arguments) -> report::FormatSettings {
    let choice = match arguments.color {
        ColorChoice::Auto => AutoStream::choice(&stdout()),
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    report::FormatSettings {
        palette: if choice == anstream::ColorChoice::Never {
            Palette::default()
        } else {
            Palette::colored()
        },
        fail_on: arguments.fail_on,
        is_stored: arguments.existing.stored,
        pages: arguments.pages.clone(),
    }
}

/// What is taken of all objects before any is judged.
#[derive(Clone, Copy)]
struct CollectOptions {
    /// What rules ask about other objects.
    facts: bool,
    /// What a search for circles needs.
    preemption_loops: bool,
}

/// What the given objects know of each other is taken into the world. Some of what was read is kept for later.
fn collect_context(
    inputs: &[Input],
    wanted: CollectOptions,
    converter: &mut Converter,
    world: &mut Index,
    progress: &mut Progress,
) -> (SourceCache, LoopSearchInput) {
    let mut shelf = SourceCache::new(inputs.len());
    if !wanted.facts && !wanted.preemption_loops && !converter.is_on() {
        for _ in inputs {
            progress.step();
        }
        return (shelf, LoopSearchInput::default());
    }
    let (mut given, mut herd, mut classes) = (
        Index::default(),
        LoopSearchInput::default(),
        PriorityClassValues::default(),
    );
    let work = |at: usize| {
        let read = inputs.get(at).map(|input| converter.read(input));
        let (mut facts, mut some, mut named) = (
            Index::default(),
            LoopSearchInput::default(),
            PriorityClassValues::default(),
        );
        if let Some(Ok(source)) = &read {
            if wanted.facts {
                facts = collect_facts(source);
            }
            for (number, document) in source.documents.iter().enumerate() {
                named.add_document(document);
                if let Some(object) = document.object().filter(|_| wanted.preemption_loops) {
                    some.add_object((at, number), object);
                }
            }
        }
        (read, facts, some, named)
    };
    let take = |at: usize, (read, facts, some, named)| {
        given.merge_all(facts);
        herd.merge(some);
        classes.merge(named);
        if let Some(read) = read {
            shelf.store(at, read);
        }
        progress.step();
    };
    worker_pool::run_ordered(inputs.len(), worker_pool::thread_count(), work, take);
    converter.set_conflicts(&classes);
    world.extend(given);
    (shelf, herd)
}

fn collect_facts(source: &ParsedSource) -> Index {
    let mut index = Index::default();
    for object in source.documents.iter().filter_map(|it| it.object()) {
        // What cannot be read is told where it is judged.
        let _ = facts::collect(&mut index, object);
    }
    index
}

#[cfg(test)]
mod tests;
