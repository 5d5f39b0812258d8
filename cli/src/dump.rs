//! `lockkeeper dump`: writes the objects that `explain` reads, to attach them to an issue.

use crate::Failure;
use crate::standard_output::StandardOutput;
use crate::world_source::ClusterArguments;
use clap::Args;
use lockkeeper_explain::{NameReplacer, reduce_object};
use serde_json::Value;
use std::io::{BufWriter, Write, stderr};

/// Flags of `lockkeeper dump`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: ClusterArguments,

    /// Replace the names of namespaces, queues, flavors, classes, workloads and jobs by numbered ones, and remove messages
    #[arg(long)]
    hide_names: bool,
}

/// Prints a JSON list with one object on each line.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut objects: Vec<Value> = Vec::new();
    let listed = arguments
        .cluster
        .list(None, &mut |object| objects.push(object))?;
    let mut replacer = NameReplacer::new();
    let mut out = BufWriter::new(StandardOutput::new());
    out.write_all(b"{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [")?;
    for (at, object) in objects.iter_mut().enumerate() {
        reduce_object(object);
        if arguments.hide_names {
            replacer.replace(object);
        }
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut out, object)?;
    }
    out.write_all(b"\n]}\n")?;
    out.flush()?;
    for note in listed.notes {
        // A closed standard error does not change the result.
        let _ = writeln!(stderr(), "warning: {}", note.text);
    }
    Ok(())
}
