#!/usr/bin/env python3
"""Checks the version of a release and writes its notes from CHANGELOG.md, with Python's standard library only.

  changelog.py check [--rehearsal] [--last TAG] VERSION
  changelog.py notes [--rehearsal] VERSION
  changelog.py may-break --last TAG VERSION

`check` compares VERSION with Cargo.toml, Chart.yaml and CHANGELOG.md, and with TAG, the tag of the release before. `notes`
prints Markdown: the upgrade notes first, then all changes. Upgrade notes are the entries that start with **Breaking:**,
**Removed:** or **Deprecated:**. With --rehearsal the section "Unreleased" is used if VERSION has none. `may-break` exits
with 0 if VERSION may have breaking changes after TAG, else with 1.
Exit codes: 0 done, 1 findings, 2 wrong usage or a file that cannot be read.
"""

import argparse
import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The order in which a user acts on them.
MARKS = ("Breaking", "Removed", "Deprecated")
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")
UNRELEASED = "Unreleased"


class Unreadable(Exception):
    """A missing or invalid file."""


@dataclasses.dataclass(frozen=True, order=True)
class Version:
    """A semantic version; a pre-release is before its release. Pre-releases are compared as text."""

    major: int
    minor: int
    patch: int
    is_release: bool
    label: str

    @staticmethod
    def parse(text: str) -> "Version":
        match = SEMVER.fullmatch(text)
        if not match:
            raise Unreadable(f"{text!r} is not a version such as 1.2.3 or 1.2.3-rc.1")
        label = match[4] or ""
        return Version(int(match[1]), int(match[2]), int(match[3]), not label, label)

    def may_break(self, last: "Version") -> bool:
        """Whether the policy allows breaking changes since `last`: a new major version, or before 1.0 a new minor one."""
        if last.major == 0:
            return (self.major, self.minor) > (0, last.minor)
        return self.major > last.major


def sections(changelog: str) -> dict[str, str]:
    """The text of each version, by its number or `Unreleased`. Dates are not part of the key."""
    found: dict[str, str] = {}
    parts = re.split(r"^## +(.+?) *$", changelog, flags=re.MULTILINE)
    for title, text in zip(parts[1::2], parts[2::2]):
        name = title.split()[0].strip("[]")
        if name in found:
            raise Unreadable(f"CHANGELOG.md has two sections {name}")
        found[name] = text.strip()
    return found


def section(changelog: str, version: str, rehearsal: bool) -> str | None:
    found = sections(changelog)
    return found.get(version, found.get(UNRELEASED) if rehearsal else None)


def entries(text: str) -> list[str]:
    """The entries of all lists of a section, each on one line."""
    found: list[list[str]] = []
    open_entry = False
    for line in text.splitlines():
        if line.startswith("- "):
            found.append([line[2:].strip()])
            open_entry = True
        elif open_entry and line.startswith("  "):
            found[-1].append(line.strip())
        else:
            open_entry = False
    return [" ".join(lines) for lines in found]


def upgrade_notes(text: str) -> list[str]:
    """The entries that a user must act on, in the order of `MARKS`."""
    found = entries(text)
    return [entry for mark in MARKS for entry in found if entry.startswith(f"**{mark}:**")]


def notes(version: str, text: str) -> str:
    upgrades = upgrade_notes(text)
    lines = [f"# lockkeeper {version}", "", "## Upgrade notes", ""]
    lines += [f"- {entry}" for entry in upgrades] or ["No entry of this version needs an action."]
    return "\n".join([*lines, "", "## Changes", "", text, ""])


def field(path: pathlib.Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not match:
        raise Unreadable(f"{path} has no line {pattern}")
    return match[1]


def check(root: pathlib.Path, version: str, rehearsal: bool, last: str | None) -> list[str]:
    """What keeps the tree from being released as this version."""
    wanted = Version.parse(version)
    chart = root / "charts/lockkeeper/Chart.yaml"
    named = {
        "Cargo.toml: workspace.package.version": field(root / "Cargo.toml", r'^version = "(.+)"$'),
        "Chart.yaml: version": field(chart, r"^version: (\S+)$"),
        "Chart.yaml: appVersion": field(chart, r"^appVersion: (\S+)$"),
    }
    findings = [f"{where} is {found}, not {version}" for where, found in named.items() if found != version]
    text = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version, rehearsal)
    if text is None:
        findings.append(f'CHANGELOG.md has no section "## {version}": rename "## {UNRELEASED}", and add a new one above')
    elif not entries(text):
        findings.append(f"CHANGELOG.md lists no change for {version}")
    if last is None:
        return findings
    before = Version.parse(last.removeprefix("v"))
    if wanted <= before:
        findings.append(f"{version} is not above {last}, the release before")
    if any(entry.startswith("**Breaking:**") for entry in entries(text or "")) and not wanted.may_break(before):
        findings.append(f"CHANGELOG.md lists breaking changes, which {version} may not have after {last}")
    return findings


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "notes", "may-break"])
    parser.add_argument("--rehearsal", action="store_true")
    parser.add_argument("--last", metavar="TAG")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the folder of the repository")
    parser.add_argument("version")
    return parser


def main(words: list[str]) -> int:
    given = arguments().parse_args(words)
    try:
        if given.command == "check":
            findings = check(given.root, given.version, given.rehearsal, given.last)
            for finding in findings:
                print(finding)
            return 1 if findings else 0
        wanted = Version.parse(given.version)
        if given.command == "may-break":
            if given.last is None:
                raise Unreadable("may-break needs --last TAG")
            return 0 if wanted.may_break(Version.parse(given.last.removeprefix("v"))) else 1
        changelog = (given.root / "CHANGELOG.md").read_text(encoding="utf-8")
        text = section(changelog, given.version, given.rehearsal)
        if text is None:
            raise Unreadable(f"CHANGELOG.md has no section {given.version}")
        print(notes(given.version, text), end="")
    except (Unreadable, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
