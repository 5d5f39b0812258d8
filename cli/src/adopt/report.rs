//! The report of an adoption, as text and as JSON.

use super::plan::{Plan, PlannedJob, Verdict};
use crate::report_format::{to_pretty_json, to_table};
use anyhow::Error;
use serde_json::{Value, json};

/// The head of the table.
const HEAD: [&str; 5] = ["NAMESPACE", "JOB", "QUEUE", "REQUESTS", "RESULT"];

/// The table, and a line that says what was written.
pub(crate) fn text_report(
    plan: &Plan,
    is_applied: bool,
    is_partial: bool,
) -> Result<String, Error> {
    if plan.jobs.is_empty() {
        return Ok("No running jobs found; nothing to adopt.\n".to_owned());
    }
    let head = HEAD.map(str::to_owned);
    let rows: Vec<[String; 5]> = [head]
        .into_iter()
        .chain(plan.jobs.iter().map(row))
        .collect();
    let summary = summary(plan, is_applied, is_partial);
    Ok(format!("{}{summary}\n", to_table(&rows)?))
}

fn row(job: &PlannedJob) -> [String; 5] {
    let requests = job.requests.iter();
    let requests: Vec<String> = requests.map(|(of, sum)| format!("{of}: {sum}")).collect();
    let (result, reason) = result(&job.verdict);
    let result = match reason {
        Some(reason) => format!("{}: {reason}", label(result)),
        None => label(result).to_owned(),
    };
    [
        job.namespace.clone(),
        job.name.to_string(),
        job.queue.clone(),
        requests.join(", "),
        result,
    ]
}

fn summary(plan: &Plan, is_applied: bool, is_partial: bool) -> String {
    let count = |of: &[&str]| {
        let results = plan.jobs.iter().map(|it| result(&it.verdict).0);
        results.filter(|it| of.contains(it)).count()
    };
    let ready = count(&["Fits", "Reserved"]);
    let left = count(&["DoesNotFit"]);
    if !is_applied {
        let next = if ready == 0 {
            "Nothing was written."
        } else if left > 0 {
            "Nothing was written; add --apply --partial to adopt those that fit."
        } else {
            "Nothing was written; add --apply to adopt them."
        };
        return format!("{ready} fit, {left} do not. {next}");
    }
    if left > 0 && !is_partial {
        return format!(
            "{ready} fit, {left} do not. Nothing was written; add --partial to adopt those that fit."
        );
    }
    let (adopted, failed) = (count(&["Adopted"]), count(&["Failed", "Fits", "Reserved"]));
    let retry = if failed > 0 {
        " Run the command again: it continues."
    } else {
        ""
    };
    format!("{adopted} adopted, {failed} failed, {left} do not fit.{retry}")
}

/// The report as JSON.
pub(crate) fn json_report(plan: &Plan, is_applied: bool) -> Result<String, Error> {
    let jobs: Vec<Value> = plan.jobs.iter().map(job_json).collect();
    let report = json!({"jobs": jobs, "applied": is_applied});
    to_pretty_json(&report)
}

fn job_json(job: &PlannedJob) -> Value {
    let (result, reason) = result(&job.verdict);
    let mut out = json!({
        "namespace": job.namespace,
        "kind": job.name.kind_name,
        "name": job.name.name,
        "queue": job.queue,
        "requests": job.requests,
        "result": result,
    });
    if let Some(out) = out.as_object_mut() {
        if let Some(reason) = reason {
            out.insert("reason".to_owned(), json!(reason));
        }
        if let Verdict::Fits(admission) = &job.verdict {
            out.insert("admission".to_owned(), json!(admission));
        }
    }
    out
}

/// The result and its reason.
fn result(verdict: &Verdict) -> (&'static str, Option<&str>) {
    match verdict {
        Verdict::Fits(_) => ("Fits", None),
        Verdict::Reserved => ("Reserved", None),
        Verdict::AlreadyAdopted => ("AlreadyAdopted", None),
        Verdict::Adopted => ("Adopted", None),
        Verdict::DoesNotFit(reason) => ("DoesNotFit", Some(reason)),
        Verdict::Skipped(reason) => ("Skipped", Some(reason)),
        Verdict::Failed(reason) => ("Failed", Some(reason)),
    }
}

/// A result for the table.
fn label(result: &str) -> &'static str {
    match result {
        "Fits" => "fits",
        "Reserved" => "fits (quota reserved by an earlier run)",
        "AlreadyAdopted" => "adopted already",
        "Adopted" => "adopted",
        "DoesNotFit" => "does not fit",
        "Skipped" => "skipped",
        _ => "failed",
    }
}
