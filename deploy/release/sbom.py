#!/usr/bin/env python3
"""Makes the output of cargo-cyclonedx independent of the machine and compares it with a binary, with the standard library.

  sbom.py normalize --root FOLDER IN OUT
  sbom.py compare SBOM BINARY

`normalize` removes the paths below FOLDER and adds a serial number that is computed from the contents. `compare` reads the
list of packages that cargo-auditable has added to BINARY, and reports packages that only one of them has.
Exit codes: 0 done, 1 findings, 2 wrong usage or a file that cannot be read.
"""

import argparse
import json
import pathlib
import re
import struct
import sys
import uuid
import zlib

SECTION = b".dep-v0"
# The list is a few kilobytes; a larger one is an error.
LIST_MAX_BYTES = 8 * 1024 * 1024
LOCAL = "local:"
# Serial numbers are version 5 UUIDs in this name space.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "lockkeeper.dev/sbom")


class Unreadable(Exception):
    """A missing or invalid file."""


def encode(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def without_paths(value: object, root: str) -> object:
    """The value without paths of this machine: own crates are named by their folder in the repository."""
    if isinstance(value, dict):
        return {key: without_paths(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [without_paths(item, root) for item in value]
    if isinstance(value, str):
        value = value.replace(f"path+file://{root}/", LOCAL)
        # An own crate has no address to download it from.
        return re.sub(r"\?download_url=file:[^#]*", "", value) if value.startswith("pkg:") else value
    return value


def normalize(document: object, root: str) -> dict:
    bom = without_paths(document, root)
    if not isinstance(bom, dict) or bom.get("bomFormat") != "CycloneDX":
        raise Unreadable("the document is not a CycloneDX BOM")
    bom.pop("serialNumber", None)
    text = encode(bom)
    if root in text:
        raise Unreadable(f"the document still contains the path {root}")
    serial = uuid.uuid5(NAMESPACE, text)
    return {"bomFormat": "CycloneDX", "specVersion": bom["specVersion"], "serialNumber": f"urn:uuid:{serial}"} | bom


def section(binary: bytes, wanted: bytes) -> bytes:
    """The contents of a section of a 64-bit little-endian ELF file."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise Unreadable("the binary is not a 64-bit ELF file")
    try:
        (table,) = struct.unpack_from("<Q", binary, 40)
        size, count, names = struct.unpack_from("<HHH", binary, 58)
        headers = [struct.unpack_from("<IIQQQQ", binary, table + number * size) for number in range(count)]
        start = headers[names][4]
    except (struct.error, IndexError) as error:
        raise Unreadable(f"the binary is truncated: {error}") from error
    for name, _, _, _, offset, length in headers:
        if binary[start + name :].startswith(wanted + b"\0"):
            return binary[offset : offset + length]
    raise Unreadable("the binary has no list of packages; build it with cargo auditable")


def packages(binary: bytes) -> set[tuple[str, str]]:
    """Name and version of each package in a binary, those of its build included."""
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(section(binary, SECTION), LIST_MAX_BYTES)
        listed = json.loads(text)["packages"]
        return {(one["name"], one["version"]) for one in listed}
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"the list of packages in the binary is invalid: {error}") from error


def compare(bom: dict, binary: bytes) -> list[str]:
    listed = packages(binary)
    described = {(one["name"], one["version"]) for one in bom.get("components", [])}
    described.add((bom["metadata"]["component"]["name"], bom["metadata"]["component"]["version"]))
    missing = sorted(listed - described)
    unused = sorted(described - listed)
    findings = [f"{name} {version} is in the binary, but not in the SBOM" for name, version in missing]
    return findings + [f"{name} {version} is in the SBOM, but not in the binary" for name, version in unused]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    normalizer = commands.add_parser("normalize")
    normalizer.add_argument("--root", required=True, metavar="FOLDER")
    normalizer.add_argument("input", type=pathlib.Path)
    normalizer.add_argument("out", type=pathlib.Path)
    comparer = commands.add_parser("compare")
    comparer.add_argument("sbom", type=pathlib.Path)
    comparer.add_argument("binary", type=pathlib.Path)
    return parser


def main(words: list[str]) -> int:
    given = arguments().parse_args(words)
    try:
        if given.command == "normalize":
            bom = normalize(json.loads(given.input.read_text(encoding="utf-8")), given.root.rstrip("/"))
            given.out.write_text(encode(bom), encoding="utf-8")
            return 0
        findings = compare(json.loads(given.sbom.read_text(encoding="utf-8")), given.binary.read_bytes())
    except (Unreadable, OSError, ValueError, KeyError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
