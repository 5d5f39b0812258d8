#!/usr/bin/env python3
"""Builds and checks an image as an OCI layout from static binaries, with Python's standard library only.

  oci.py make --version V --revision COMMIT --created SECONDS --amd64 FILE --arm64 FILE FOLDER
  oci.py check [--output json] FOLDER

The same binaries give the same bytes. index.json names one image index with both architectures, as other builders
do, so that tools find the image by its name. Exit codes: 0 done, 1 findings, 2 wrong usage or a file
that cannot be read.
"""

import argparse
import dataclasses
import datetime
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import struct
import sys
import tarfile
from collections.abc import Iterator

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

# An unprivileged user, as a number: the kubelet cannot verify that a user name is not root's.
USER = "65532:65532"
ENTRYPOINT = "/lockkeeper"
BINARY_MODE = 0o555

# e_machine of ELF, by the name that images have for it.
MACHINES = {"amd64": 62, "arm64": 183}

LABELS = {
    "org.opencontainers.image.title": "lockkeeper",
    "org.opencontainers.image.description": "Admission webhook and controller for batch and AI workloads on Kubernetes",
    "org.opencontainers.image.licenses": "Apache-2.0",
}
REF_NAME = "org.opencontainers.image.ref.name"
VERSION = "org.opencontainers.image.version"
REVISION = "org.opencontainers.image.revision"
CREATED = "org.opencontainers.image.created"


class Unreadable(Exception):
    """A missing or invalid file."""


@dataclasses.dataclass(frozen=True)
class Release:
    """The metadata of the image."""

    version: str
    revision: str
    created: int

    def time(self) -> str:
        moment = datetime.datetime.fromtimestamp(self.created, datetime.timezone.utc)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def labels(self) -> dict[str, str]:
        return LABELS | {VERSION: self.version, REVISION: self.revision, CREATED: self.time()}


# Making it.


def encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def blob(folder: pathlib.Path, media_type: str, data: bytes) -> dict:
    """Stores a blob, and says what leads to it."""
    path = folder / "blobs" / "sha256" / digest(data).removeprefix("sha256:")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"mediaType": media_type, "digest": digest(data), "size": len(data)}


def layer(binary: bytes, created: int) -> bytes:
    """A tar with the binary, whose times and owners are not those of this machine."""
    entry = tarfile.TarInfo(ENTRYPOINT.removeprefix("/"))
    entry.size, entry.mode, entry.mtime = len(binary), BINARY_MODE, created
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        tar.addfile(entry, io.BytesIO(binary))
    return out.getvalue()


def image(folder: pathlib.Path, architecture: str, binary: bytes, release: Release) -> dict:
    tar = layer(binary, release.created)
    config = {
        "architecture": architecture,
        "os": "linux",
        "created": release.time(),
        "config": {"User": USER, "Entrypoint": [ENTRYPOINT], "WorkingDir": "/", "Labels": release.labels()},
        "rootfs": {"type": "layers", "diff_ids": [digest(tar)]},
        "history": [{"created": release.time(), "created_by": "deploy/image/build"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(folder, CONFIG, encode(config)),
        "layers": [blob(folder, LAYER, gzip.compress(tar, compresslevel=9, mtime=0))],
        "annotations": release.labels(),
    }
    descriptor = blob(folder, MANIFEST, encode(manifest))
    return descriptor | {"platform": {"architecture": architecture, "os": "linux"}}


def make(folder: pathlib.Path, binaries: dict[str, pathlib.Path], release: Release) -> None:
    """Writes the layout; one that was there is replaced."""
    read = {architecture: path.read_bytes() for architecture, path in binaries.items()}
    if (folder / "oci-layout").is_file():
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise Unreadable(f"{folder} is there and is no OCI layout; name another folder")
    images = [image(folder, architecture, binary, release) for architecture, binary in sorted(read.items())]
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": images, "annotations": release.labels()}
    descriptor = blob(folder, INDEX, encode(index)) | {"annotations": {REF_NAME: release.version}}
    (folder / "index.json").write_bytes(encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor]}))
    (folder / "oci-layout").write_bytes(encode({"imageLayoutVersion": "1.0.0"}))


# Checking it.


@dataclasses.dataclass
class Check:
    """A layout and the findings about it."""

    folder: pathlib.Path
    findings: list[str] = dataclasses.field(default_factory=list)
    images: list[dict] = dataclasses.field(default_factory=list)
    seen: set[str] = dataclasses.field(default_factory=set)

    def equal(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self.findings.append(f"{what} is {found!r}, not {expected!r}")

    def read(self, what: str, descriptor: dict, media_type: str) -> bytes | None:
        """The blob of a descriptor, if digest and size match."""
        self.equal(f"{what}: mediaType", descriptor.get("mediaType"), media_type)
        name = str(descriptor.get("digest", "")).removeprefix("sha256:")
        path = self.folder / "blobs" / "sha256" / name
        if not name.isalnum() or not path.is_file():
            self.findings.append(f"{what}: there is no blob sha256:{name}")
            return None
        self.seen.add(name)
        data = path.read_bytes()
        self.equal(f"{what}: the digest of the blob", digest(data), f"sha256:{name}")
        self.equal(f"{what}: size", descriptor.get("size"), len(data))
        return data

    def document(self, what: str, descriptor: dict, media_type: str) -> dict | None:
        data = self.read(what, descriptor, media_type)
        return None if data is None else parse(what, data)


def parse(what: str, data: bytes) -> dict:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise Unreadable(f"{what} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is no JSON object")
    return value


def check(folder: pathlib.Path) -> Check:
    found = Check(folder)
    mark = parse("oci-layout", (folder / "oci-layout").read_bytes())
    found.equal("oci-layout: imageLayoutVersion", mark.get("imageLayoutVersion"), "1.0.0")
    top = parse("index.json", (folder / "index.json").read_bytes())
    manifests = top.get("manifests", [])
    found.equal("index.json: the number of images", len(manifests), 1)
    for descriptor in manifests:
        if not descriptor.get("annotations", {}).get(REF_NAME):
            found.findings.append(f"index.json: the image has no annotation {REF_NAME}")
        check_index(found, descriptor)
    stored = {path.name for path in (folder / "blobs" / "sha256").iterdir()}
    for name in sorted(stored - found.seen):
        found.findings.append(f"blob sha256:{name}: nothing leads to it")
    return found


def check_index(found: Check, descriptor: dict) -> None:
    index = found.document("index", descriptor, INDEX) or {}
    platforms = []
    for manifest in index.get("manifests", []):
        platform = manifest.get("platform", {})
        platforms.append(f"{platform.get('os')}/{platform.get('architecture')}")
        check_image(found, platforms[-1], platform.get("architecture"), manifest)
    found.equal("index: the platforms", platforms, [f"linux/{name}" for name in sorted(MACHINES)])


def check_image(found: Check, what: str, architecture: str | None, descriptor: dict) -> None:
    manifest = found.document(f"{what}: manifest", descriptor, MANIFEST)
    if manifest is None:
        return
    config = found.document(f"{what}: config", manifest.get("config", {}), CONFIG) or {}
    found.equal(f"{what}: architecture", config.get("architecture"), architecture)
    found.equal(f"{what}: os", config.get("os"), "linux")
    run = config.get("config", {})
    found.equal(f"{what}: User", run.get("User"), USER)
    found.equal(f"{what}: Entrypoint", run.get("Entrypoint"), [ENTRYPOINT])
    for label in [*LABELS, VERSION, REVISION, CREATED]:
        if not run.get("Labels", {}).get(label):
            found.findings.append(f"{what}: label {label} is missing")
    layers = manifest.get("layers", [])
    found.equal(f"{what}: the number of layers", len(layers), 1)
    for number, descriptor in enumerate(layers):
        diff_ids = config.get("rootfs", {}).get("diff_ids", [])
        diff_id = diff_ids[number] if number < len(diff_ids) else None
        check_layer(found, what, architecture, descriptor, diff_id)


def check_layer(found: Check, what: str, architecture: str | None, descriptor: dict, diff_id: str | None) -> None:
    data = found.read(f"{what}: layer", descriptor, LAYER)
    if data is None:
        return
    try:
        tar = gzip.decompress(data)
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            files = [(entry, archive.extractfile(entry)) for entry in archive.getmembers()]
            contents = [(entry, file.read() if file else b"") for entry, file in files]
    except (OSError, EOFError, tarfile.TarError) as error:
        found.findings.append(f"{what}: the layer cannot be unpacked: {error}")
        return
    found.equal(f"{what}: diff_id", diff_id, digest(tar))
    found.equal(f"{what}: the files", [entry.name for entry, _ in contents], [ENTRYPOINT.removeprefix("/")])
    for entry, binary in contents:
        found.equal(f"{what}: the mode of {entry.name}", oct(entry.mode), oct(BINARY_MODE))
        found.equal(f"{what}: the owner of {entry.name}", (entry.uid, entry.gid), (0, 0))
        found.findings.extend(f"{what}: {entry.name} {problem}" for problem in elf_problems(binary, architecture))
        found.images.append({"platform": what, "binaryBytes": len(binary), "layerBytes": len(data)})


def elf_problems(binary: bytes, architecture: str | None) -> Iterator[str]:
    """What keeps a binary from running on this architecture with nothing beside it."""
    if binary[:6] != b"\x7fELF\x02\x01" or len(binary) < 64:
        yield "is no 64-bit ELF file"
        return
    (machine,) = struct.unpack_from("<H", binary, 18)
    if machine != MACHINES.get(architecture or ""):
        yield f"is for machine {machine}, not for {architecture}"
    (table,) = struct.unpack_from("<Q", binary, 32)
    size, count = struct.unpack_from("<HH", binary, 54)
    for number in range(count):
        try:
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", binary, table + number * size)
            if kind == 3:
                yield "asks for a program interpreter: it is not static"
            if kind == 2 and any(tag == 1 for tag in dynamic_tags(binary, offset, length)):
                yield "needs a shared library: it is not static"
        except struct.error:
            yield "is cut short"
            return


def dynamic_tags(binary: bytes, offset: int, length: int) -> Iterator[int]:
    for at in range(offset, offset + length, 16):
        tag, _ = struct.unpack_from("<QQ", binary, at)
        if tag == 0:
            return
        yield tag


# The command line.


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make", help="make a layout")
    maker.add_argument("--version", required=True)
    maker.add_argument("--revision", required=True)
    maker.add_argument("--created", required=True, type=int, metavar="SECONDS")
    for architecture in MACHINES:
        maker.add_argument(f"--{architecture}", required=True, type=pathlib.Path, metavar="FILE")
    checker = commands.add_parser("check", help="check a layout")
    checker.add_argument("--output", choices=["text", "json"], default="text")
    for command in (maker, checker):
        command.add_argument("folder", type=pathlib.Path)
    return parser


def report(found: Check, output: str) -> None:
    if output == "json":
        print(json.dumps({"findings": found.findings, "images": found.images}, indent=2))
        return
    for finding in found.findings:
        print(f"{found.folder}: {finding}")
    for one in found.images:
        print(f"{one['platform']}: binary {one['binaryBytes']} bytes, layer {one['layerBytes']} bytes")


def main(words: list[str]) -> int:
    given = arguments().parse_args(words)
    try:
        if given.command == "make":
            binaries = {architecture: getattr(given, architecture) for architecture in MACHINES}
            make(given.folder, binaries, Release(given.version, given.revision, given.created))
            return 0
        found = check(given.folder)
    except (Unreadable, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    report(found, given.output)
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
