//! Prints an eviction as text.

use crate::answer::{Eviction, EvictionCount, Preemption, Requeue};
use std::fmt::{self, Write};

/// Writes the section about an eviction.
pub(crate) fn write_eviction(out: &mut impl Write, eviction: &Eviction) -> fmt::Result {
    writeln!(out, "\nEvicted")?;
    let preemption = eviction.preemption.as_ref();
    let token = preemption.and_then(|it| it.reason.as_deref());
    let reason = match token {
        Some(token) => format!("{} ({token})", eviction.reason),
        None => eviction.reason.clone(),
    };
    write_line(out, "at", &eviction.time)?;
    write_line(out, "reason", &reason)?;
    if let Some(preemption) = preemption {
        write_preemption(out, preemption)?;
    }
    if preemption.is_none_or(|it| it.preemptor.is_none()) {
        write_line(out, "message", &eviction.message)?;
    }
    let counts: Vec<String> = eviction.counts.iter().map(count_text).collect();
    write_line(out, "evictions", &counts.join(", "))?;
    let times = match eviction.requeue_count {
        0 => String::new(),
        count => format!("; requeue count {count}"),
    };
    let requeue = format!("{}{times}", requeue_text(&eviction.requeue));
    write_line(out, "requeued", &requeue)
}

fn write_line(out: &mut impl Write, name: &str, value: &str) -> fmt::Result {
    if value.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {name:<14} {value}")
}

fn write_preemption(out: &mut impl Write, preemption: &Preemption) -> fmt::Result {
    write_line(out, "preemptor", &preemptor_text(preemption))?;
    let path = |it: &Option<String>| it.clone().unwrap_or_default();
    write_line(out, "preemptor path", &path(&preemption.preemptor_path))?;
    write_line(out, "path", &path(&preemption.path))
}

fn preemptor_text(preemption: &Preemption) -> String {
    let uid = preemption.preemptor_uid.as_deref();
    let Some(name) = &preemption.preemptor else {
        return match uid {
            Some(uid) => format!("the workload with uid {uid}, which is not in the input"),
            None => "not known".to_owned(),
        };
    };
    let job = preemption.preemptor_job.as_ref();
    let queue = preemption.preemptor_cluster_queue.as_ref();
    let priority = preemption.preemptor_priority;
    let details = [
        job.cloned(),
        queue.map(|it| format!("ClusterQueue {it}")),
        priority.map(|it| format!("priority {it}")),
    ];
    let details: Vec<String> = details.into_iter().flatten().collect();
    match details.as_slice() {
        [] => name.clone(),
        details => format!("{name} ({})", details.join(", ")),
    }
}

fn count_text(count: &EvictionCount) -> String {
    let cause = match count.underlying_cause.as_str() {
        "" => String::new(),
        cause => format!(" ({cause})"),
    };
    format!("{} {}{cause}", count.count, count.reason)
}

fn requeue_text(requeue: &Requeue) -> String {
    match requeue {
        Requeue::Queued => "now: it waits for quota".to_owned(),
        Requeue::AfterRelease => "when its pods have stopped and its quota is released".to_owned(),
        Requeue::At { time } => format!("at {time}, the end of its backoff"),
        Requeue::AfterActivation => "when spec.active is set to true".to_owned(),
        Requeue::AfterResume => "when its LocalQueue or ClusterQueue is resumed".to_owned(),
        Requeue::NotQueued => "not before its objects change".to_owned(),
    }
}
