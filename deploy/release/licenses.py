#!/usr/bin/env python3
"""Lists the licences of all packages in a binary, with their texts, from `cargo metadata`, with the standard library only.

  cargo metadata --locked --format-version 1 | licenses.py --package lockkeeper > FILE

The list has the packages that are linked into the binary, or run while it is built, on any platform; those of tests are
left out. Equal texts are printed once. Exit codes: 0 done, 1 a package without a licence, 2 wrong usage or invalid input.
"""

import argparse
import json
import pathlib
import sys

TEXTS = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")
# Linked into each static binary, and no packages of Cargo.
TOOLCHAIN = [("Rust standard library", "MIT OR Apache-2.0"), ("musl libc", "MIT")]
RULE = "-" * 100


class Unreadable(Exception):
    """Input that is not the output of `cargo metadata`."""


def closure(metadata: dict, package: str) -> list[dict]:
    """A package and all that it depends on, without the dependencies of tests, by name and version."""
    by_id = {one["id"]: one for one in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    pending = [one["id"] for one in metadata["packages"] if one["name"] == package]
    if not pending:
        raise Unreadable(f"there is no package {package}")
    found: set[str] = set()
    while pending:
        current = pending.pop()
        if current in found:
            continue
        found.add(current)
        for dependency in nodes[current]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                pending.append(dependency["pkg"])
    return sorted((by_id[one] for one in found), key=lambda one: (one["name"], one["version"]))


def texts(package: dict) -> list[str]:
    """The texts of the licences in the folder of a package, without trailing space."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(TEXTS))
    read = (path.read_text(encoding="utf-8", errors="replace") for path in files)
    return ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in read]


def document(packages: list[dict]) -> str:
    foreign = [one for one in packages if one["source"] is not None]
    lines = ["Licences of the packages in this release.", ""]
    lines += [f"{name}: {license}" for name, license in TOOLCHAIN]
    lines += [f"{one['name']} {one['version']}: {one['license'] or 'see below'}" for one in foreign]
    users: dict[str, list[str]] = {}
    without = []
    for one in foreign:
        name, found = f"{one['name']} {one['version']}", texts(one)
        for text in found:
            users.setdefault(text, []).append(name)
        if not found:
            without.append(name)
    if without:
        lines += ["", "These packages contain no text of their licence; the list above names it:"]
        lines += [f"  {name}" for name in without]
    for text, names in sorted(users.items(), key=lambda item: item[1]):
        lines += ["", RULE, ", ".join(dict.fromkeys(names)), RULE, "", text]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True)
    given = parser.parse_args(words)
    try:
        packages = closure(json.load(sys.stdin), given.package)
        missing = [one for one in packages if one["source"] and not one["license"] and not one["license_file"]]
        text = document(packages)
    except (Unreadable, OSError, ValueError, KeyError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for one in missing:
        print(f"{one['name']} {one['version']} names no licence", file=sys.stderr)
    sys.stdout.write(text)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
