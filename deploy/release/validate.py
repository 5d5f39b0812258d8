"""Validates the SBOMs and the provenance of a release: validate.py FOLDER. deploy/release/validate installs the libraries."""

import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement


def sbom_problem(path: pathlib.Path) -> str | None:
    text = path.read_text(encoding="utf-8")
    version = SchemaVersion.from_version(json.loads(text)["specVersion"])
    error = JsonStrictValidator(version).validate_str(text)
    return None if error is None else str(error)


def provenance_problem(path: pathlib.Path) -> str | None:
    """Both messages have no unknown fields, and the statement has all that the specification requires."""
    value = json.loads(path.read_text(encoding="utf-8"))
    try:
        Statement.copy_from_pb(json_format.ParseDict(value, statement_pb2.Statement())).validate()
        predicate = json_format.ParseDict(value["predicate"], provenance_pb2.Provenance())
    except (json_format.ParseError, ValueError, KeyError) as error:
        return str(error)
    complete = predicate.build_definition.build_type and predicate.run_details.builder.id
    return None if complete else "the build type or the builder is missing"


def main(words: list[str]) -> int:
    folder = pathlib.Path(words[0])
    checks = [(path, sbom_problem) for path in sorted(folder.glob("*.cdx.json"))]
    checks += [(path, provenance_problem) for path in sorted(folder.glob("*.intoto.json"))]
    if {check for _, check in checks} != {sbom_problem, provenance_problem}:
        print(f"{folder} has no SBOM or no provenance")
        return 1
    problems = [f"{path.name}: {problem}" for path, check in checks if (problem := check(path))]
    for problem in problems:
        print(problem)
    if not problems:
        print(f"validate: {len(checks)} documents are valid", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
