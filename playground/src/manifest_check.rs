//! The steps of a check: parse, collect, check, render.

use crate::check_request::{CheckRequest, RequestError, SourceFile};
use lockkeeper_api::config::Config;
use lockkeeper_check::collect::{CollectOptions, SourceParts, add_param};
use lockkeeper_check::report::{self, CheckedFile, FormatSettings, OutputFormat, Palette, Tally};
use lockkeeper_check::{
    AdmissionPolicies, Checker, OldObjects, ParsedSource, PolicySet, ReadError, RuleSelection,
    Severity, enforce_queue_rules, offline_settings,
};
use lockkeeper_policies::user_rules::UserRules;
use std::sync::Arc;

type ReadSource = (String, Result<ParsedSource, ReadError>);

/// Answers a request in JSON with a report in JSON: what `lockkeeper check --output json` prints for the same files.
///
/// # Errors
///
/// A request that is malformed, or names a rule that does not exist. Files that cannot be read are findings.
pub fn check_json(request: &str) -> Result<String, RequestError> {
    check_manifests(&serde_json::from_str(request)?)
}

/// Checks manifests on one thread. The cost is that of `lockkeeper check`: linear in the files, and bounded for the
/// search for preemption loops.
///
/// # Errors
///
/// A request that names a rule that does not exist. Files that cannot be read are findings.
pub fn check_manifests(request: &CheckRequest) -> Result<String, RequestError> {
    let user_rules = Arc::new(UserRules::default());
    let selection = RuleSelection::new(&request.select, &request.ignore, &user_rules)?;
    let mut config = Config::default();
    if request.closed {
        enforce_queue_rules(&mut config);
    }
    // Only exceptions depend on the time, and the default configuration has none.
    let settings = offline_settings(config.clone(), user_rules, &selection, 0)?;
    let sources: Vec<ReadSource> = request.files.iter().map(read).collect();
    let mut all = collect(&sources);
    if request.closed {
        all.facts.mark_all_complete();
        all.policies.set_complete();
    }
    let policies = with_params(all.policies, &sources);
    let policies = AdmissionPolicies::new(policies, None, &all.definitions);
    let loops = all.loop_input.search(&config, None);
    let checker = Checker::new(settings, all.facts, selection, loops)?
        .with_definitions(Arc::new(all.definitions))
        .with_release(request.kubernetes_version)
        .with_admission_policies(policies)
        .with_strict_kinds(request.strict);
    let (old_objects, unreadable) = old_objects(request);
    let checker = checker.with_old_objects(old_objects);
    Ok(report_of(&checker, unreadable, sources))
}

fn read(file: &SourceFile) -> ReadSource {
    (file.name.clone(), ParsedSource::parse(file.text.clone()))
}

/// What all files have together.
fn collect(sources: &[ReadSource]) -> SourceParts {
    let options = CollectOptions {
        facts: true,
        preemption_loops: true,
        definitions: true,
    };
    let mut all = SourceParts::default();
    for (at, (_, source)) in sources.iter().enumerate() {
        if let Ok(source) = source {
            let parts = SourceParts::new(at, source, options);
            all.facts.merge_all(parts.facts);
            all.loop_input.merge(parts.loop_input);
            all.definitions.merge(parts.definitions);
            all.policies.merge(parts.policies);
        }
    }
    all
}

/// The policies with the parameters among the files.
fn with_params(mut policies: PolicySet, sources: &[ReadSource]) -> PolicySet {
    let kinds = policies.param_kinds();
    let read = sources
        .iter()
        .filter_map(|(_, source)| source.as_ref().ok());
    for document in read.flat_map(|it| &it.documents) {
        add_param(&mut policies, &kinds, &document.value);
    }
    policies
}

/// The objects of the old files, and the files that cannot be read.
fn old_objects(request: &CheckRequest) -> (OldObjects, Vec<CheckedFile>) {
    let mut objects = OldObjects::new(request.kubernetes_version);
    let mut unreadable = Vec::new();
    for (name, source) in request.old_files.iter().map(read) {
        match source {
            Ok(source) => source.documents.into_iter().for_each(|it| objects.add(it)),
            Err(error) => unreadable.push(CheckedFile {
                name,
                outcome: Err(error),
            }),
        }
    }
    (objects, unreadable)
}

fn report_of(linter: &Checker, unreadable: Vec<CheckedFile>, sources: Vec<ReadSource>) -> String {
    let format = report::format(
        OutputFormat::Json,
        FormatSettings {
            palette: Palette::default(),
            fail_on: Severity::Error,
            is_stored: false,
            is_verbose: false,
            is_summary: false,
            pages: None,
        },
    );
    let checked = sources.into_iter().enumerate();
    let checked = checked.map(|(at, (name, source))| CheckedFile {
        name,
        outcome: source.map(|it| linter.check_file(at, it)),
    });
    let mut tally = Tally::default();
    let mut parts = Vec::new();
    for file in unreadable.into_iter().chain(checked) {
        tally.merge(Tally::from_checked_file(&file));
        parts.push(format.file(&file));
    }
    parts.retain(|it| !it.is_empty());
    let parts = parts.join(format.separator());
    format!("{}{parts}{}", format.head(), format.tail(&tally))
}
