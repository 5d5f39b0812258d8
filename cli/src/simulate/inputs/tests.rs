#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::*;

const MAP: &str = "{csv: {columns: {name: job, arrival: submitted, start: started, end: finished, queue: team, priority: prio, \
    pods: workers, requests: {cpu: cpus}}}, defaults: {runSeconds: 300}}";

/// Reads a file of the tests.
fn read(name: &str) -> Result<Located<JobTrace>, Error> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../parquet-table/tests/files");
    let path = Path::new(folder).join(name);
    let mapping: Mapping = serde_saphyr::from_str(MAP).unwrap();
    read_jobs(&path, Format::for_path(&path), &mapping)
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_are_read() {
    let found = read("duckdb.parquet").unwrap();
    let jobs = found.value.jobs.iter().map(|job| {
        let pod_set = job.pod_sets.first().unwrap();
        (
            &*job.name,
            job.arrival,
            job.run_seconds,
            job.priority,
            pod_set.count,
        )
    });
    let expected = [
        ("train-1", 0, 600, 5, 4),
        ("train-2", 60, 630, 0, 4),
        ("eval, small", 120, 60, 9, 1),
        ("debug", 180, 300, 9, 1),
    ];
    assert_eq!(jobs.collect::<Vec<_>>(), expected);
    let assumptions = found.value.assumptions.iter();
    let assumptions: Vec<_> = assumptions.map(|it| (it.text.as_str(), it.count)).collect();
    let run_time = "run time unknown: 300 s (defaults.runSeconds of the mapping)";
    assert_eq!(assumptions, [("priority unknown: 0", 1), (run_time, 1)]);
    assert!(matches!(found.positions, Positions::Lines(rows) if rows == [1, 2, 3, 4]));
    let error = read("pyarrow-brotli.parquet").err().unwrap().to_string();
    assert!(
        error.contains("pyarrow-brotli.parquet:1: Parquet error: "),
        "{error}"
    );
}

#[cfg(not(feature = "parquet"))]
#[test]
fn build_without_parquet_says_so() {
    let error = read("duckdb.parquet").err().unwrap().to_string();
    assert!(
        error.contains("build lockkeeper with --features parquet"),
        "{error}"
    );
}
