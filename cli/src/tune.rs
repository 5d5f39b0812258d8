//! `lockkeeper tune`: searches for configurations that meet goals, by simulation.

mod arguments;
mod config_path;
mod evaluation;
mod result_text;
mod saved_results;
mod search_file;

use crate::Failure;
use crate::file_replacement::write_file;
use crate::progress::Progress;
use crate::report_format::to_pretty_json;
use crate::simulate::{read_object, read_traces, run_in_order};
use crate::standard_output::print_visible;
use anyhow::{Context, Error, anyhow};
pub(crate) use arguments::TuneArguments;
use arguments::TuneOutput;
use evaluation::{Evaluated, Evaluation};
use lockkeeper_simulate::tune::{Candidate, Search};
use result_text::{BestConfiguration, TuneResult};
use saved_results::{SavedResults, digest};
use search_file::{SearchFile, space};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  a configuration is within all limits of the goals
  1  none is
  2  usage error, or input that cannot be read
  141  the reader of standard output closed it";

/// Searches, prints the best configurations, and returns the exit code.
pub(crate) fn run(arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    let search_file: SearchFile = read_object(&arguments.search).map_err(Failure::Usage)?;
    let config = match &arguments.config {
        Some(path) => read_object(path).map_err(Failure::Usage)?,
        None => json!({}),
    };
    let in_file = |error: Error| Failure::Usage(anyhow!("{}: {error}", arguments.search.display()));
    let fields = search_file.fields(&config).map_err(in_file)?;
    let has_config = arguments.config.is_some();
    let traces = read_traces(&arguments.inputs, has_config)?;
    let evaluation = Evaluation {
        traces: &traces,
        config: &config,
        fields: &fields,
        goals: &search_file.goals,
    };
    let mut saved = match &arguments.results {
        None => SavedResults::default(),
        Some(path) => {
            let jobs: Vec<_> = traces.iter().map(|it| &it.value).collect();
            let inputs = digest(&[&jobs, &config, &fields, &search_file.goals]);
            SavedResults::open(path, inputs).map_err(Failure::Usage)?
        }
    };
    let search = Search::new(space(&fields), arguments.max_configurations);
    let deadline = arguments.timeout.map(|it| Instant::now() + it.get());
    let result = search_best(&evaluation, search, &mut saved, deadline).map_err(Failure::Usage)?;
    if let Some(folder) = &arguments.write {
        write_configurations(folder, &evaluation, &result)?;
    }
    let text = match arguments.output {
        TuneOutput::Human => result.text(&evaluation)?,
        TuneOutput::Json => result.json(&evaluation)?,
    };
    print_visible(&text)?;
    let is_met = result.meets_limits(&evaluation);
    Ok(ExitCode::from(u8::from(!is_met)))
}

/// Runs a search to its end, or until the deadline.
fn search_best(
    evaluation: &Evaluation<'_>,
    mut search: Search,
    saved: &mut SavedResults,
    deadline: Option<Instant>,
) -> Result<TuneResult, Error> {
    let total = usize::try_from(search.limit()).unwrap_or(usize::MAX);
    let mut progress = Progress::new("simulating", total);
    let mut evaluated: BTreeMap<Candidate, Evaluated> = BTreeMap::new();
    let unchanged = search.space().unchanged();
    let mut today: Option<Evaluated> = None;
    let mut result = TuneResult {
        tried: 0,
        all: search.space().count(),
        loops: 0,
        admits_fewer: 0,
        is_cut: false,
        today: Evaluated::default(),
        best: Vec::new(),
    };
    loop {
        let batch = search.next_batch();
        if batch.is_empty() {
            break;
        }
        let is_over = || deadline.is_some_and(|it| it <= Instant::now());
        let unknown = batch.iter().filter(|it| saved.get(it).is_none());
        let unknown: Vec<Candidate> = unknown.cloned().collect();
        let mut found: BTreeMap<Candidate, Evaluated> = BTreeMap::new();
        let mut candidates = unknown.iter();
        run_in_order(
            &unknown,
            |candidate| {
                // The configuration of today is always measured.
                let is_left_out = is_over() && *candidate != unchanged;
                (!is_left_out)
                    .then(|| evaluation.run(candidate))
                    .transpose()
            },
            |it| {
                if let (Some(candidate), Some(it)) = (candidates.next(), it) {
                    saved.add(candidate, &it)?;
                    found.insert(candidate.clone(), it);
                }
                progress.step();
                Ok(())
            },
        )?;
        for candidate in batch {
            let Some(it) = found
                .remove(&candidate)
                .or_else(|| saved.get(&candidate).cloned())
            else {
                result.is_cut = true;
                continue;
            };
            result.tried = result.tried.saturating_add(1);
            let base = today.get_or_insert_with(|| it.clone());
            if it.is_loop {
                result.loops = result.loops.saturating_add(1);
            } else if it.never_admitted > base.never_admitted {
                result.admits_fewer = result.admits_fewer.saturating_add(1);
            } else {
                search.add(candidate.clone(), evaluation.score(&it));
                evaluated.insert(candidate, it);
            }
        }
        if result.is_cut {
            break;
        }
    }
    progress.finish();
    result.today = today.unwrap_or_default();
    result.best = best(evaluation, &search, &mut evaluated);
    Ok(result)
}

/// The best candidates; only those within all limits, if there are any.
fn best(
    evaluation: &Evaluation<'_>,
    search: &Search,
    evaluated: &mut BTreeMap<Candidate, Evaluated>,
) -> Vec<BestConfiguration> {
    let scored = search.front().scored().iter();
    let best = scored.filter_map(|it| {
        Some(BestConfiguration {
            evaluated: evaluated.remove(&it.candidate)?,
            candidate: it.candidate.clone(),
            equal: it.equal,
        })
    });
    let mut best: Vec<BestConfiguration> = best.collect();
    let meets = |it: &BestConfiguration| evaluation.meets_limits(&it.evaluated);
    if best.iter().any(meets) {
        best.retain(meets);
    }
    best
}

fn write_configurations(
    folder: &Path,
    evaluation: &Evaluation<'_>,
    result: &TuneResult,
) -> Result<(), Error> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for (number, best) in (1_u64..).zip(&result.best) {
        let config: Value = evaluation.config(&best.candidate)?;
        let path = folder.join(format!("{number}.json"));
        write_file(&path, &to_pretty_json(&config)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
