//! The report in the documentation is one that the program prints.

use lockkeeper_observe::{Counts, Report, write_report};

const PAGE: &str = include_str!("../../../docs/kueue.md");

/// The numbers of a row of the report.
fn counts(block: &str, decision: &str) -> Counts {
    let row = block.lines().find(|it| it.starts_with(decision)).unwrap();
    let numbers = row.split_whitespace().skip(1);
    let numbers: Vec<u64> = numbers.map(|it| it.parse().unwrap()).collect();
    let [agreed, different, explained, ambiguous] = numbers[..] else {
        panic!("{row}");
    };
    Counts {
        agreed,
        different,
        explained,
        ambiguous,
    }
}

#[test]
fn documented_report_has_the_form_of_reports() {
    let begin = "Comparing the decisions of Kueue since ";
    let (_, rest) = PAGE.split_once(begin).unwrap();
    let (rest, _) = rest.split_once("```").unwrap();
    let (since, rows) = rest.split_once('\n').unwrap();
    let report = Report {
        since: Some(since.to_owned()),
        admissions: counts(rows, "admission"),
        preemptions: counts(rows, "preemption"),
        missing: counts(rows, "missing"),
        ..Report::default()
    };
    let mut printed = String::new();
    write_report(&report, &mut printed).unwrap();
    assert_eq!(printed, format!("{begin}{rest}"));
}
