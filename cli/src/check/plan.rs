//! The steps of a check of files: load, collect, check, render.

use super::admission_policies::PolicySources;
use super::arguments::{Arguments, FixScope};
use super::existing_objects::{self, ExistingState, Needs};
use super::fix_files::{self, FixSummary};
use super::inputs::{self, Input};
use super::printer::Printer;
use crate::progress::Progress;
use crate::{Failure, configuration};
use lockkeeper_api::config::Config;
use lockkeeper_check::collect::{CollectOptions, SourceParts};
use lockkeeper_check::report::{self, CheckedFile, Format, Tally, pluralize};
use lockkeeper_check::{
    AdmissionPolicies, Checker, Converter, DefinitionSet, Fixer, KindRegistry, LoopFindings,
    LoopSearchInput, OldObjects, ParsedSource, PolicySet, PriorityClassValues, ReadError,
    RuleSelection, SourceCache, append_yaml, enforce_queue_rules, offline_settings, worker_pool,
};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::schema::{EXPRESSION, METADATA, SCHEMA_VIOLATION, UNKNOWN};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::{admission_policy, decode_error, preemption_loops};
use serde_json::Value;
use std::io::{Write, stderr};
use std::sync::{Arc, Mutex};

/// The rules that definitions are needed for.
const SCHEMA_RULES: [&str; 6] = [
    admission_policy::ID,
    decode_error::ID,
    EXPRESSION,
    METADATA,
    SCHEMA_VIOLATION,
    UNKNOWN,
];

/// The configuration and the selected rules of a check.
pub(super) struct Plan<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) config: Config,
    pub(super) settings: Settings,
    pub(super) selection: RuleSelection,
}

/// The collected data besides the facts in the index.
struct Collected {
    cache: SourceCache,
    loop_input: LoopSearchInput,
    definitions: DefinitionSet,
    policies: PolicySet,
}

impl<'a> Plan<'a> {
    pub(super) fn new(arguments: &'a Arguments) -> Result<Self, Failure> {
        let loaded = configuration::read(arguments.config.as_deref(), &arguments.rules)
            .map_err(Failure::Usage)?;
        let user_rules = Arc::clone(&loaded.settings.user_rules);
        let selection = RuleSelection::new(&arguments.select, &arguments.ignore, &user_rules)
            .map_err(|error| Failure::Usage(error.into()))?;
        let now = configuration::unix_now_seconds();
        let mut config = loaded.config.clone();
        if arguments.existing.is_closed() {
            enforce_queue_rules(&mut config);
        }
        let settings = offline_settings(config, user_rules, &selection, now)
            .map_err(|error| Failure::Usage(error.into()))?;
        Ok(Self {
            arguments,
            config: loaded.config,
            settings,
            selection,
        })
    }

    /// Fixes the files if requested, then checks them. Returns the exit code.
    pub(super) fn run(self, out: &mut (impl Write + Send)) -> Result<u8, Failure> {
        let arguments = self.arguments;
        let mut inputs = inputs::list_inputs(&arguments.paths, &arguments.exclude);
        inputs::mark_patches(&mut inputs);
        let is_fixed = arguments.fix.is_some() || arguments.diff;
        let needs_definitions = is_fixed || self.needs_definitions();
        let (policy_objects, policies_unreadable) = arguments.sources.policy_objects()?;
        let needs = Needs {
            definitions: needs_definitions,
            policies: self.needs_policies().then_some(&policy_objects),
        };
        let mut existing = existing_objects::load(&arguments.existing, needs)?;
        let (mut definitions, unreadable) = arguments.sources.definitions()?;
        existing.unreadable.extend(unreadable);
        existing.unreadable.extend(policies_unreadable);
        definitions.merge(existing.definitions);
        existing.definitions = definitions;
        let converter = arguments.conversion.converter();
        let (old_objects, unreadable) = arguments.sources.old_objects(
            arguments.kubernetes_version,
            &arguments.paths,
            &converter,
        )?;
        existing.unreadable.extend(unreadable);
        if is_fixed {
            let fixer = self.fixer(&inputs, existing.index.clone(), &existing.definitions)?;
            if arguments.diff {
                return print_diff(&fixer, &inputs, out);
            }
            print_fix_summary(fix_files::write_fixes(&fixer, &mut inputs)?);
            if fix_files::print_stdin(&inputs, out)? {
                // Standard output has the corrected text.
                let other = (old_objects, policy_objects);
                return self.check(&inputs, existing, other, &mut stderr());
            }
        }
        self.check(&inputs, existing, (old_objects, policy_objects), out)
    }

    /// Whether a selected rule uses definitions.
    fn needs_definitions(&self) -> bool {
        SCHEMA_RULES.iter().any(|it| self.selection.includes(it))
    }

    /// Whether admission policies are evaluated.
    fn needs_policies(&self) -> bool {
        self.selection.includes(admission_policy::ID)
    }

    fn check(
        self,
        inputs: &[Input],
        existing: ExistingState,
        (old_objects, policy_objects): (OldObjects, Vec<Value>),
        out: &mut (impl Write + Send),
    ) -> Result<u8, Failure> {
        let arguments = self.arguments;
        let mut index = existing.index;
        let format = report::format(arguments.output(), arguments.format_settings());
        // Each file is read once to collect facts and once to check it.
        let mut printer = Printer::new(&*format, out, inputs.len().saturating_mul(2));
        if arguments.conversion.is_stdout() {
            printer.mute();
        }
        printer.write(&format.head());
        for file in &existing.unreadable {
            printer.write_file(&format.file(file), Tally::from_checked_file(file));
        }
        let mut converter = arguments.conversion.converter();
        let options = CollectOptions {
            facts: self.selection.needs_other_objects(),
            preemption_loops: self.selection.includes(preemption_loops::RULE),
            definitions: self.needs_definitions(),
        };
        let progress = &mut printer.progress;
        let mut collected = collect(inputs, options, &mut converter, &mut index, progress);
        collected.definitions.merge(existing.definitions);
        let policies = PolicySources {
            of_files: collected.policies,
            of_cluster: existing.policies,
            objects: &policy_objects,
            world: &existing.world,
            is_closed: arguments.existing.is_closed(),
        };
        let policies = if self.needs_policies() {
            policies.load(inputs, &arguments.policy_user, &collected.definitions)
        } else {
            AdmissionPolicies::default()
        };
        let loops = if options.preemption_loops {
            let input = &collected.loop_input;
            input.search(&self.config, arguments.kueue_version)
        } else {
            LoopFindings::new()
        };
        let checker = Checker::new(self.settings, index, self.selection, loops)?
            .with_definitions(Arc::new(collected.definitions))
            .with_release(arguments.kubernetes_version)
            .with_schema_catalog(arguments.sources.schemas(arguments.kubernetes_version))
            .with_old_objects(old_objects)
            .with_admission_policies(policies)
            .with_strict_kinds(arguments.other_kinds.strict)
            .with_cel_cross_check(arguments.verify_cel)?;
        let run = FileRun {
            checker: &checker,
            converter: &converter,
            format: &*format,
            cache: &collected.cache,
            large_input: Mutex::default(),
        };
        let mut yaml = Ok(String::new());
        worker_pool::run_ordered(
            inputs.len(),
            worker_pool::thread_count(),
            |at| inputs.get(at).map(|input| run.check_input(at, input)),
            |_, rendered| {
                if let Some(file) = rendered {
                    printer.write_file(&file.report, file.tally);
                    append_yaml(&mut yaml, file.yaml);
                }
                printer.progress.step();
            },
        );
        printer.write_exceptions(checker.settings(), arguments.config.as_deref());
        let code = printer.finish()?.exit_code(arguments.fail_on());
        arguments.conversion.write(&yaml?, out)?;
        Ok(code)
    }

    /// A fixer with the facts of the files and of the existing objects.
    fn fixer(
        &self,
        inputs: &[Input],
        mut index: Index,
        definitions: &DefinitionSet,
    ) -> Result<Fixer, Failure> {
        // A fix edits the text of a file, which has the objects before any conversion.
        let mut converter = Converter::default();
        let mut progress = Progress::new("checking", inputs.len());
        let options = CollectOptions {
            facts: true,
            preemption_loops: false,
            definitions: true,
        };
        let mut collected = collect(inputs, options, &mut converter, &mut index, &mut progress);
        collected.definitions.merge(definitions.clone());
        let mut kinds = KindRegistry::new(&self.selection)?;
        kinds.set_definitions(Arc::new(collected.definitions));
        Ok(Fixer {
            kinds,
            index,
            settings: self.settings.clone(),
            adds_defaults: self.arguments.fix != Some(FixScope::Corrected),
        })
    }
}

/// The parts that the check of one file uses.
struct FileRun<'a> {
    checker: &'a Checker,
    converter: &'a Converter,
    format: &'a dyn Format,
    cache: &'a SourceCache,
    /// Locked by the thread that processes a large input.
    large_input: Mutex<()>,
}

/// The output of one file.
struct RenderedFile {
    report: String,
    tally: Tally,
    yaml: Result<String, lockkeeper_check::YamlError>,
}

impl FileRun<'_> {
    fn check_input(&self, at: usize, input: &Input) -> RenderedFile {
        let _alone = input.is_large().then(|| self.large_input.lock());
        let cached = self.cache.take(at);
        let source = cached.unwrap_or_else(|| load(input, self.converter));
        let source = source.map(|it| self.converter.drop_conflicting_classes(it));
        let yaml = source
            .as_ref()
            .map_or(Ok(String::new()), |it| self.converter.yaml(it));
        let file = CheckedFile {
            name: input.name.clone(),
            outcome: source.map(|it| self.checker.check_file(at, it)),
        };
        RenderedFile {
            report: self.format.file(&file),
            tally: Tally::from_checked_file(&file),
            yaml,
        }
    }
}

fn load(input: &Input, converter: &Converter) -> Result<ParsedSource, ReadError> {
    input.read().map(|source| converter.convert_source(source))
}

/// Reads all inputs, and adds their facts to the index. Some of the parsed files are cached for the check.
fn collect(
    inputs: &[Input],
    options: CollectOptions,
    converter: &mut Converter,
    index: &mut Index,
    progress: &mut Progress,
) -> Collected {
    let mut collected = Collected {
        cache: SourceCache::new(inputs.len()),
        loop_input: LoopSearchInput::default(),
        definitions: DefinitionSet::default(),
        policies: PolicySet::default(),
    };
    if options.are_empty() && !converter.is_on() {
        for _ in inputs {
            progress.step();
        }
        return collected;
    }
    // The worker pool delivers in input order, so that the result does not depend on threads.
    let (mut facts, mut classes) = (Index::default(), PriorityClassValues::default());
    let large_input = Mutex::new(());
    worker_pool::run_ordered(
        inputs.len(),
        worker_pool::thread_count(),
        |at| {
            let input = inputs.get(at);
            let is_large = input.is_some_and(Input::is_large);
            let _alone = is_large.then(|| large_input.lock());
            let source = input.map(|input| load(input, converter));
            let parts = match &source {
                Some(Ok(source)) => SourceParts::new(at, source, options),
                _ => SourceParts::default(),
            };
            (source, parts)
        },
        |at, (source, parts)| {
            facts.merge_all(parts.facts);
            collected.loop_input.merge(parts.loop_input);
            collected.definitions.merge(parts.definitions);
            collected.policies.merge(parts.policies);
            classes.merge(parts.classes);
            if let Some(source) = source {
                collected.cache.store(at, source);
            }
            progress.step();
        },
    );
    converter.set_conflicts(&classes);
    index.extend(facts);
    collected
}

fn print_fix_summary(summary: FixSummary) {
    let files = pluralize(summary.files, "file");
    let typos = pluralize(summary.typos_fixed, "typo");
    let defaults = pluralize(summary.defaults_added, "default");
    if summary.files > 0 {
        // A closed standard error is ignored.
        let _ = writeln!(stderr(), "fixed {typos} and added {defaults} in {files}");
    }
}

/// Prints the corrections as a diff. Returns 1 if there are any, 2 if a file cannot be read.
fn print_diff(
    fixer: &Fixer,
    inputs: &[Input],
    out: &mut (impl Write + Send),
) -> Result<u8, Failure> {
    let summary = fix_files::print_fixes(fixer, inputs, out)?;
    Ok(if summary.unreadable > 0 {
        let files = pluralize(summary.unreadable, "file");
        let _ = writeln!(
            stderr(),
            "{files} could not be read; run without --diff for the reasons"
        );
        2
    } else {
        u8::from(summary.files > 0)
    })
}
