#!/usr/bin/env python3
"""Writes the provenance of a release: an in-toto statement with a SLSA v1 predicate, with the standard library only.

  provenance.py make --version V --commit SHA --lock FILE [--tool NAME=VERSION...] FILE... > STATEMENT
  provenance.py check STATEMENT FOLDER

The statement names each FILE with its SHA-256, and the commit and Cargo.lock that it was built from. It has no times, so
that a second build gives the same bytes. It is signed as a part of SHA256SUMS. LOCKKEEPER_REPOSITORY is the address of the
repository, LOCKKEEPER_BUILDER the identity of the builder; without them the statement names neither an address nor a
service. `check` compares the digests with the files in FOLDER. Exit codes: 0 done, 1 findings, 2 wrong usage or a file
that cannot be read.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import sys

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
# The format demands URIs. These need no domain: deploy/release/build describes the type, and a local builder has no name.
BUILD_TYPE = "urn:lockkeeper:deploy-release-build:v1"
LOCAL_BUILDER = "urn:lockkeeper:local-builder"


class Unreadable(Exception):
    """A missing or invalid file."""


def sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source(commit: str, repository: str) -> dict:
    """The commit that was built, with the address of its repository if it is known."""
    found: dict = {"name": "source", "digest": {"gitCommit": commit}}
    return found | {"uri": f"git+{repository}@{commit}"} if repository else found


def make(version: str, commit: str, lock: pathlib.Path, tools: dict[str, str], files: list[pathlib.Path]) -> dict:
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise Unreadable(f"{commit!r} is not a commit: pass 40 hexadecimal digits")
    subjects = [{"name": path.name, "digest": {"sha256": sha256(path)}} for path in files]
    subjects.sort(key=lambda one: one["name"])
    dependencies = [source(commit, os.environ.get("LOCKKEEPER_REPOSITORY", ""))]
    dependencies.append({"name": "Cargo.lock", "digest": {"sha256": sha256(lock)}})
    builder: dict = {"id": os.environ.get("LOCKKEEPER_BUILDER") or LOCAL_BUILDER}
    if tools:
        builder["version"] = dict(sorted(tools.items()))
    definition = {
        "buildType": BUILD_TYPE,
        "externalParameters": {"version": version},
        "internalParameters": {},
        "resolvedDependencies": dependencies,
    }
    predicate = {"buildDefinition": definition, "runDetails": {"builder": builder}}
    return {"_type": STATEMENT, "subject": subjects, "predicateType": PREDICATE, "predicate": predicate}


def check(statement: dict, folder: pathlib.Path) -> list[str]:
    findings = []
    if (statement.get("_type"), statement.get("predicateType")) != (STATEMENT, PREDICATE):
        findings.append("this is not an in-toto statement with a SLSA v1 predicate")
    subjects = statement.get("subject", [])
    if not subjects:
        findings.append("the statement names no file")
    for subject in subjects:
        name, expected = str(subject.get("name")), subject.get("digest", {}).get("sha256")
        path = folder / name
        if pathlib.PurePath(name).name != name or not path.is_file():
            findings.append(f"{name}: there is no such file in {folder}")
        elif sha256(path) != expected:
            findings.append(f"{name}: the digest is {sha256(path)}, not {expected}")
    return findings


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("--version", required=True)
    maker.add_argument("--commit", required=True)
    maker.add_argument("--lock", required=True, type=pathlib.Path)
    maker.add_argument("--tool", action="append", default=[], metavar="NAME=VERSION")
    maker.add_argument("files", nargs="+", type=pathlib.Path)
    checker = commands.add_parser("check")
    checker.add_argument("statement", type=pathlib.Path)
    checker.add_argument("folder", type=pathlib.Path)
    return parser


def main(words: list[str]) -> int:
    given = arguments().parse_args(words)
    try:
        if given.command == "make":
            tools = dict(tool.split("=", 1) for tool in given.tool)
            statement = make(given.version, given.commit, given.lock, tools, given.files)
            print(json.dumps(statement, indent=2))
            return 0
        findings = check(json.loads(given.statement.read_text(encoding="utf-8")), given.folder)
    except (Unreadable, OSError, ValueError, AttributeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
