//! Properties of all texts: no panic, and what is imported is a valid order of jobs.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_trace_import::{ImportError, ImportedTrace, Mapping, parse_csv, parse_swf};
use proptest::collection::vec;
use proptest::prelude::{any, prop_oneof};
use proptest::strategy::{Just, Strategy};
use proptest::{prop_assert, prop_assert_eq, proptest};

fn mapping(text: &str) -> Mapping {
    serde_saphyr::from_str(text).unwrap()
}

/// Numbers as they occur, and those at the limits.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(-1_i64),
        0..100_i64,
        Just(i64::MAX),
        Just(i64::MIN),
        any::<i64>()
    ]
}

fn check(
    imported: Result<ImportedTrace, ImportError>,
    lines: usize,
) -> Result<(), proptest::test_runner::TestCaseError> {
    let lines = u64::try_from(lines).unwrap();
    match imported {
        Ok(ImportedTrace { trace, lines: of }) => {
            prop_assert_eq!(trace.jobs.len(), of.len());
            prop_assert!(trace.jobs.is_sorted_by_key(|it| it.arrival));
            prop_assert!(trace.jobs.iter().all(|it| it.run_seconds > 0));
            prop_assert!(of.iter().all(|line| (1..=lines).contains(line)));
            // Each record is a job, or counted as left out.
            let left_out = trace.assumptions.iter();
            let left_out = left_out.filter(|it| it.text.contains("left out"));
            let left_out: u64 = left_out.map(|it| it.count).sum();
            prop_assert_eq!(u64::try_from(of.len()).unwrap() + left_out, lines);
        }
        Err(error) => prop_assert!(error.line.is_none_or(|it| it <= lines + 1), "{error}"),
    }
    Ok(())
}

proptest! {
    #[test]
    fn swf_records_are_jobs_or_left_out(records in vec(vec(number(), 17), 1..6)) {
        let lines = records.iter().enumerate().map(|(at, values)| {
            let values = values.iter().map(|it| format!(" {it}"));
            format!("{at}{}\n", values.collect::<String>())
        });
        let text: String = lines.collect();
        let map = mapping("defaultQueue: q\nsort: true\nswf: {memory: memory}");
        check(parse_swf(&text, &map), records.len())?;
    }

    #[test]
    fn any_text_is_read_or_rejected(text in any::<String>()) {
        let map = mapping("defaultQueue: q\ncsv: {columns: {arrival: a}}");
        let _ = parse_swf(&text, &map);
        let lines = text.lines().count();
        if let Err(error) = parse_csv(&format!("a\n{text}"), &map) {
            let last = u64::try_from(lines).unwrap() + 2;
            prop_assert!(error.line.is_none_or(|it| it <= last), "{error}");
        }
    }
}
