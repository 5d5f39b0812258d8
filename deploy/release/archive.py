#!/usr/bin/env python3
"""Writes a tar archive whose bytes depend only on the contents, with Python's standard library only.

  archive.py --time SECONDS OUT SOURCE=NAME...

Each SOURCE is a file or a folder, and NAME its path in the archive. Entries are sorted and belong to root; their time is
SECONDS since 1970; files are readable by all, and executable if the owner may execute them. OUT ends with .tar, .tar.gz or
.tgz. Exit codes: 0 done, 2 wrong usage or a file that cannot be read.
"""

import argparse
import gzip
import io
import pathlib
import sys
import tarfile

FOLDER_MODE, PROGRAM_MODE, FILE_MODE = 0o755, 0o755, 0o644


class Unreadable(Exception):
    """A source that is missing or cannot be archived."""


def entries(source: pathlib.Path, name: str) -> dict[str, pathlib.Path]:
    """The paths below a source, by their names in the archive."""
    if source.is_symlink():
        raise Unreadable(f"{source} is a symbolic link: archive the file itself")
    if source.is_file():
        return {name: source}
    if not source.is_dir():
        raise Unreadable(f"{source} is neither a file nor a folder")
    found = {name: source}
    for path in source.iterdir():
        found |= entries(path, f"{name}/{path.name}")
    return found


def header(name: str, path: pathlib.Path, time: int) -> tarfile.TarInfo:
    """The header of an entry, without owner, times and group rights of this machine."""
    entry = tarfile.TarInfo(name)
    entry.mtime = time
    if path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, FOLDER_MODE
    else:
        entry.size = path.stat().st_size
        entry.mode = PROGRAM_MODE if path.stat().st_mode & 0o100 else FILE_MODE
    return entry


def tar(sources: dict[str, pathlib.Path], time: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in sorted(sources.items()):
            entry = header(name, path, time)
            if entry.isdir():
                archive.addfile(entry)
            else:
                with path.open("rb") as contents:
                    archive.addfile(entry, contents)
    return out.getvalue()


def parse(words: list[str]) -> dict[str, pathlib.Path]:
    sources: dict[str, pathlib.Path] = {}
    for word in words:
        source, equals, name = word.rpartition("=")
        if not equals or not name or name.startswith("/") or ".." in name.split("/"):
            raise Unreadable(f"{word!r} is not SOURCE=NAME with a relative NAME")
        for entry, path in entries(pathlib.Path(source), name).items():
            if entry in sources:
                raise Unreadable(f"two sources have the name {entry}")
            sources[entry] = path
    return sources


def write(out: pathlib.Path, sources: dict[str, pathlib.Path], time: int) -> None:
    data = tar(sources, time)
    if out.name.endswith((".tar.gz", ".tgz")):
        data = gzip.compress(data, compresslevel=9, mtime=0)
    elif not out.name.endswith(".tar"):
        raise Unreadable(f"{out}: the name must end with .tar, .tar.gz or .tgz")
    out.write_bytes(data)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", required=True, type=int, metavar="SECONDS")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("sources", nargs="+", metavar="SOURCE=NAME")
    given = parser.parse_args(words)
    try:
        write(given.out, parse(given.sources), given.time)
    except (Unreadable, OSError, tarfile.TarError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
