#!/usr/bin/env python3
"""Writes the manifest of the kubectl plugin for krew, with the standard library only.

  krew.py --version V --url ADDRESS ARCHIVE... > lockkeeper.yaml

ADDRESS is the folder from which the archives are downloaded; the names of the archives end with -linux-ARCHITECTURE.tar.gz.
Exit codes: 0 done, 2 wrong usage or a file that cannot be read.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys

DESCRIPTION = """Explains why a job is pending and what would change that, lists queues and
quota, validates manifests offline, simulates queues, and checks webhooks,
CRDs, certificates and quota of a cluster. Works with lockkeeper, Kueue and
Koordinator.
"""


class Unreadable(Exception):
    """A missing file or an invalid argument."""


def platform(archive: pathlib.Path, url: str) -> dict:
    match = re.fullmatch(r".+-(linux)-([a-z0-9]+)\.tar\.gz", archive.name)
    if not match:
        raise Unreadable(f"{archive.name} does not end with -linux-ARCHITECTURE.tar.gz")
    folder = archive.name.removesuffix(".tar.gz")
    return {
        "selector": {"matchLabels": {"os": match[1], "arch": match[2]}},
        "uri": f"{url.rstrip('/')}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "files": [{"from": f"{folder}/lockkeeper", "to": "."}, {"from": f"{folder}/LICENSE", "to": "."}],
        "bin": "lockkeeper",
    }


def manifest(version: str, url: str, archives: list[pathlib.Path]) -> str:
    if not re.match(r"https?://", url):
        raise Unreadable(f"{url!r} is not an address such as https://…")
    value = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "lockkeeper"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Explain queues, quota and preemption of jobs",
            "description": DESCRIPTION,
            "platforms": [platform(archive, url) for archive in archives],
        },
    }
    # JSON is YAML, and needs no library to be written.
    return json.dumps(value, indent=2) + "\n"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--url", required=True, metavar="ADDRESS")
    parser.add_argument("archives", nargs="+", type=pathlib.Path)
    given = parser.parse_args(words)
    try:
        print(manifest(given.version, given.url, given.archives), end="")
    except (Unreadable, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
