//! `lockkeeper check`: the answers of the API server and the webhook, without either.

mod block;
mod choice;
mod circles;
mod cluster;
mod conversion;
mod crew;
mod excuses;
mod fix;
mod judge;
mod kinds;
mod kueue_version;
mod lines;
mod outside;
mod plain;
mod policy_report;
mod printer;
mod progress;
mod report;
mod shelf;
mod source;
mod stored;

use crate::user_rules::Folders;
use crate::{Failure, configuration};
use anstream::AutoStream;
use choice::Choice;
use circles::Herd;
use clap::{Args, ColorChoice, ValueEnum};
use conversion::{Classes, Conversion, Converter};
use fix::{Fixed, Mender};
use judge::Judge;
use kinds::Known;
use kueue_version::KueueVersion;
use lockkeeper_policies::endless;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use printer::Printer;
use progress::Progress;
use report::{Judged, Palette, Tally};
use shelf::Shelf;
use source::{Input, Source};
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
    rules: Folders,

    #[command(flatten)]
    outside: outside::Outside,

    #[command(flatten)]
    conversion: Conversion,

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
    let choice = Choice::new(&arguments.select, &arguments.ignore, &user_rules);
    let choice = choice.map_err(Failure::Usage)?;
    let config = loaded.config.clone();
    let settings = kinds::settings(loaded.config, user_rules, &choice);
    let settings = settings.map_err(|error| Failure::Usage(error.into()))?;
    if arguments.outside.stored {
        return stored::run(arguments, &config, choice, settings, out);
    }
    let inputs = source::list(&arguments.paths);
    let (mut world, unreadable) = outside::world(&arguments.outside)?;
    if arguments.fix || arguments.diff {
        let mender = mender(&inputs, world.clone(), settings.clone(), &choice)?;
        if arguments.diff {
            return diff(&mender, &inputs, out);
        }
        tell(fix::write(&mender, &inputs)?);
    }
    let format = report::format(arguments.output, printing(arguments));
    let mut printer = Printer::new(&*format, out, inputs.len().saturating_mul(2));
    if arguments.conversion.is_all() {
        printer.mute();
    }
    printer.write(&format.head());

    for judged in unreadable {
        printer.file(&format.file(&judged), Tally::of(&judged));
    }
    let mut converter = arguments.conversion.converter();
    let wanted = Wanted {
        facts: choice.asks_of_others(),
        circles: choice.takes(endless::RULE),
    };
    let progress = &mut printer.progress;
    let (shelf, herd) = look(&inputs, wanted, &mut converter, &mut world, progress);
    let circles = if wanted.circles {
        herd.search(&config, arguments.kueue_version)
    } else {
        circles::Found::new()
    };
    let judge = Judge::new(settings, world, choice, circles)?.verifying(arguments.verify_cel)?;
    let work = |at: usize| {
        let input = inputs.get(at)?;
        let read = shelf.take(at).unwrap_or_else(|| converter.read(input));
        let read = read.map(|source| converter.settled(source));
        let part = read
            .as_ref()
            .map_or(Ok(String::new()), |it| converter.yaml(it));
        let judged = Judged {
            name: input.name.clone(),
            outcome: read.map(|source| judge.file(at, source)),
        };
        Some((format.file(&judged), Tally::of(&judged), part))
    };
    let mut yaml = Ok(String::new());
    crew::in_order(inputs.len(), crew::threads(), work, |_, done| {
        if let Some((text, tally, part)) = done {
            printer.file(&text, tally);
            conversion::collect(&mut yaml, part);
        }
        printer.progress.step();
    });
    printer.exceptions(judge.settings(), arguments.config.as_deref());
    let code = printer.finish()?.code(arguments.fail_on);
    arguments.conversion.write(&yaml?, out)?;
    Ok(code)
}

/// What is known when files are put right: of other objects what the files themselves say, and what is around them.
fn mender(
    inputs: &[Input],
    mut world: Index,
    settings: Settings,
    choice: &Choice,
) -> Result<Mender, Failure> {
    // Files are put right as what they are.
    let mut converter = Converter::default();
    let mut progress = Progress::new(inputs.len());
    let wanted = Wanted {
        facts: true,
        circles: false,
    };
    look(inputs, wanted, &mut converter, &mut world, &mut progress);
    Ok(Mender {
        known: Known::new(choice)?,
        world,
        settings,
    })
}

/// Says what was put right. Who closed standard error does not want to know.
fn tell(fixed: Fixed) {
    let files = report::counted(fixed.files, "file");
    let (corrected, filled) = (fixed.corrected, fixed.filled);
    if fixed.files > 0 {
        let _ = writeln!(
            stderr(),
            "{corrected} corrected and {filled} filled in, in {files}"
        );
    }
}

/// Prints what would be put right: 1 if there is anything, 2 if something cannot be read.
fn diff(mender: &Mender, inputs: &[Input], out: &mut (impl Write + Send)) -> Result<u8, Failure> {
    let fixed = fix::print(mender, inputs, out)?;
    Ok(if fixed.unreadable > 0 {
        let files = report::counted(fixed.unreadable, "file");
        let _ = writeln!(stderr(), "{files} not read; without --diff they are named");
        2
    } else {
        u8::from(fixed.files > 0)
    })
}

fn printing(arguments: &Arguments) -> report::Settings {
    let choice = match arguments.color {
        ColorChoice::Auto => AutoStream::choice(&stdout()),
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    report::Settings {
        palette: if choice == anstream::ColorChoice::Never {
            Palette::default()
        } else {
            Palette::coloured()
        },
        fail_on: arguments.fail_on,
        is_stored: arguments.outside.stored,
        pages: arguments.pages.clone(),
    }
}

/// What is taken of all objects before any is judged.
#[derive(Clone, Copy)]
struct Wanted {
    /// What rules ask about other objects.
    facts: bool,
    /// What a search for circles needs.
    circles: bool,
}

/// What the given objects know of each other is taken into the world. Some of what was read is kept for later.
fn look(
    inputs: &[Input],
    wanted: Wanted,
    converter: &mut Converter,
    world: &mut Index,
    progress: &mut Progress,
) -> (Shelf, Herd) {
    let mut shelf = Shelf::new(inputs.len());
    if !wanted.facts && !wanted.circles && !converter.is_on() {
        for _ in inputs {
            progress.step();
        }
        return (shelf, Herd::default());
    }
    let (mut given, mut herd, mut classes) =
        (Index::default(), Herd::default(), Classes::default());
    let work = |at: usize| {
        let read = inputs.get(at).map(|input| converter.read(input));
        let (mut facts, mut some, mut named) =
            (Index::default(), Herd::default(), Classes::default());
        if let Some(Ok(source)) = &read {
            if wanted.facts {
                facts = facts_of(source);
            }
            for (number, document) in source.documents.iter().enumerate() {
                named.take(document);
                if let Some(object) = document.object().filter(|_| wanted.circles) {
                    some.take((at, number), object);
                }
            }
        }
        (read, facts, some, named)
    };
    let take = |at: usize, (read, facts, some, named)| {
        given.join_all(facts);
        herd.add(some);
        classes.add(named);
        if let Some(read) = read {
            shelf.keep(at, read);
        }
        progress.step();
    };
    crew::in_order(inputs.len(), crew::threads(), work, take);
    converter.take(&classes);
    world.extend(given);
    (shelf, herd)
}

fn facts_of(source: &Source) -> Index {
    let mut index = Index::default();
    for object in source.documents.iter().filter_map(|it| it.object()) {
        // What cannot be read is told where it is judged.
        let _ = facts::gather(&mut index, object);
    }
    index
}

#[cfg(test)]
mod tests;
