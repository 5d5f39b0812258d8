//! Files of several writers (`files/make.py`).
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_parquet_table::{ParquetTable, TableError, TimeText};
use std::fs;
use std::panic::{set_hook, take_hook};

/// The columns that are read: all but `tags`, which has lists.
const COLUMNS: [&str; 8] = [
    "job",
    "submitted",
    "started",
    "finished",
    "team",
    "prio",
    "workers",
    "cpus",
];

/// The rows of each file, with times in seconds after the first one.
const ROWS: [&str; 4] = [
    "train-1|0|10|610|vision|5|4|48",
    "train-2|60|70|700|vision||4|48",
    "eval, small|120|125|185|nlp|9|1|4",
    "debug|180|||nlp|9|1|0.5",
];

/// 2026-11-29T08:00:00Z.
const BEGIN_S: i64 = 1_795_939_200;

fn file(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/files/{name}.parquet", env!("CARGO_MANIFEST_DIR"));
    fs::read(path).unwrap()
}

fn read(file: Vec<u8>, columns: &[&str], times: TimeText) -> Result<Vec<String>, TableError> {
    let table = ParquetTable::open(file)?;
    let rows = table.rows(|name| columns.contains(&name), times)?;
    let rows = rows.map(|row| row.map(|it| it.iter().take(8).collect::<Vec<_>>().join("|")));
    rows.collect()
}

/// A row with its times in this form.
fn expected(row: &str, times: TimeText, is_number: bool) -> String {
    let fields = row.split('|').enumerate().map(|(at, text)| {
        let is_time = (1..4).contains(&at) && !text.is_empty();
        if !is_time {
            return text.to_owned();
        }
        let seconds = BEGIN_S + text.parse::<i64>().unwrap();
        match times {
            _ if is_number => seconds.to_string(),
            TimeText::Seconds => format!("{seconds}.000"),
            TimeText::Milliseconds => format!("{seconds}000"),
            TimeText::Rfc3339 => jiff::Timestamp::from_second(seconds).unwrap().to_string(),
        }
    });
    fields.collect::<Vec<_>>().join("|")
}

#[test]
fn files_of_all_writers_have_the_same_rows() {
    for name in [
        "pyarrow-none",
        "pyarrow-snappy",
        "pyarrow-gzip",
        "pyarrow-lz4",
        "pyarrow-int96",
        "polars-zstd-ns",
        "duckdb",
        "seconds",
    ] {
        for times in [TimeText::Seconds, TimeText::Milliseconds, TimeText::Rfc3339] {
            let rows = read(file(name), &COLUMNS, times).unwrap();
            let expected = ROWS.map(|row| expected(row, times, name == "seconds"));
            assert_eq!(rows, expected, "{name} {times:?}");
        }
    }
}

#[test]
fn columns_that_are_not_read_are_empty() {
    let rows = read(file("duckdb"), &["team"], TimeText::Seconds).unwrap();
    let expected = ["vision", "vision", "nlp", "nlp"].map(|it| format!("||||{it}|||"));
    assert_eq!(rows, expected);
    let header = ParquetTable::open(file("duckdb")).unwrap().header();
    assert_eq!(
        header.iter().collect::<Vec<_>>(),
        [&COLUMNS[..], &["tags"]].concat()
    );
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |file, columns| {
        read(file, columns, TimeText::Seconds)
            .unwrap_err()
            .to_string()
    };
    let nested = error(file("duckdb"), &["tags"]);
    assert_eq!(nested, "the column \"tags\" has no simple values");
    let brotli = error(file("pyarrow-brotli"), &COLUMNS);
    assert_eq!(
        brotli,
        "Parquet error: Disabled feature at compile time: brotli"
    );
    let empty = error(Vec::new(), &COLUMNS);
    assert!(empty.contains("Parquet file"), "{empty}");
}

/// A damaged file is an error, or has other rows.
#[test]
fn damaged_files_are_errors() {
    // The texts of the library's panics are of no use.
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    for name in ["pyarrow-snappy", "pyarrow-gzip", "polars-zstd-ns", "duckdb"] {
        let whole = file(name);
        let mut errors = 0;
        let mut check = |file: Vec<u8>| {
            errors += usize::from(read(file, &COLUMNS, TimeText::Seconds).is_err());
        };
        for at in 0..whole.len() {
            check(whole.get(..at).unwrap().to_vec());
            for change in [1, 0x80, 0xff] {
                let mut file = whole.clone();
                *file.get_mut(at).unwrap() ^= change;
                check(file);
            }
        }
        // All that are cut off, and more.
        assert!(errors > whole.len(), "{name}: {errors}");
    }
    set_hook(hook);
}
