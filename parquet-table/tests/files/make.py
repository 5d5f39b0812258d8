"""Writes the Parquet files of the tests with three writers: make.py. Needs the Python packages pyarrow, polars and duckdb.

The rows are those of docs/traces/jobs.csv. Columns that the mapping does not name have values that are never read.
"""

import datetime
import pathlib

import duckdb
import polars
import pyarrow
import pyarrow.parquet

FOLDER = pathlib.Path(__file__).parent
BEGIN = datetime.datetime(2026, 11, 29, 8, tzinfo=datetime.timezone.utc)


def at(*seconds):
    return [it if it is None else BEGIN + datetime.timedelta(seconds=it) for it in seconds]


COLUMNS = {
    "job": ["train-1", "train-2", "eval, small", "debug"],
    "submitted": at(0, 60, 120, 180),
    "started": at(10, 70, 125, None),
    "finished": at(610, 700, 185, None),
    "team": ["vision", "vision", "nlp", "nlp"],
    "prio": [5, None, 9, 9],
    "workers": [4.0, 4.0, 1.0, 1.0],
    "cpus": [48.0, 48.0, 4.0, 0.5],
    "tags": [["a"], [], None, ["b", "c"]],
}

table = pyarrow.table(COLUMNS)
for codec in ["none", "snappy", "gzip", "lz4"]:
    pyarrow.parquet.write_table(table, FOLDER / f"pyarrow-{codec}.parquet", compression=codec)
pyarrow.parquet.write_table(
    table.drop_columns(["tags"]), FOLDER / "pyarrow-int96.parquet", use_deprecated_int96_timestamps=True
)
pyarrow.parquet.write_table(table, FOLDER / "pyarrow-brotli.parquet", compression="brotli")
polars.DataFrame(COLUMNS).with_columns(polars.col("^(submitted|started|finished)$").dt.cast_time_unit("ns")).write_parquet(
    FOLDER / "polars-zstd-ns.parquet"
)
duckdb.sql(f"copy (from '{FOLDER}/pyarrow-none.parquet') to '{FOLDER}/duckdb.parquet'")
# Numbers in place of timestamps.
TIMES = ("submitted", "started", "finished")
seconds = {name: [it and it.timestamp() for it in COLUMNS[name]] for name in TIMES}
pyarrow.parquet.write_table(pyarrow.table({**COLUMNS, **seconds}), FOLDER / "seconds.parquet")
