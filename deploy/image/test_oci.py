"""Builds a layout from small binaries, and breaks it in each way that the check detects."""

import contextlib
import gzip
import io
import json
import pathlib
import struct
import tempfile
import unittest

import oci


def elf(machine: int, segments: tuple[tuple[int, bytes], ...] = ()) -> bytes:
    """A 64-bit ELF file with these segments: a type, and the contents."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    at = 64 + 56 * len(segments)
    table, contents = b"", b""
    for kind, content in segments:
        table += struct.pack("<IIQQQQQQ", kind, 5, at + len(contents), 0, 0, len(content), len(content), 8)
        contents += content
    return head + table + contents


AMD64, ARM64 = 62, 183
RELEASE = oci.Release("1.2.3", "0123abc", 1_700_000_000)


class Layout(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, name: str = "image", amd64: bytes = elf(AMD64), arm64: bytes = elf(ARM64)) -> pathlib.Path:
        binaries = {}
        for architecture, binary in (("amd64", amd64), ("arm64", arm64)):
            binaries[architecture] = self.folder / f"{name}-{architecture}"
            binaries[architecture].write_bytes(binary)
        oci.make(self.folder / name, binaries, RELEASE)
        return self.folder / name

    def check(self, layout: pathlib.Path, *expected: str) -> None:
        findings = oci.check(layout).findings
        self.assertEqual(len(findings), len(expected), findings)
        for finding, part in zip(findings, expected):
            self.assertIn(part, finding)

    def test_what_is_made_has_no_findings(self) -> None:
        layout = self.make()
        self.check(layout)
        platforms = [image["platform"] for image in oci.check(layout).images]
        self.assertEqual(platforms, ["linux/amd64", "linux/arm64"])

    def test_the_same_binaries_give_the_same_bytes(self) -> None:
        def contents(layout: pathlib.Path) -> dict[str, bytes]:
            files = (path for path in layout.rglob("*") if path.is_file())
            return {str(path.relative_to(layout)): path.read_bytes() for path in files}

        one, two = contents(self.make("one")), contents(self.make("two"))
        self.assertEqual(one, two)
        # Two images of three blobs each, their index, and the two files at the top.
        self.assertEqual(len(one), 9)

    def test_image_runs_as_unprivileged_user(self) -> None:
        layout = self.make()
        configs = []
        for path in (layout / "blobs" / "sha256").iterdir():
            with contextlib.suppress(ValueError):
                configs.append(json.loads(path.read_bytes()))
        configs = [it for it in configs if "rootfs" in it]
        self.assertEqual([it["config"]["User"] for it in configs], ["65532:65532"] * 2)
        self.assertEqual({it["created"] for it in configs}, {"2023-11-14T22:13:20Z"})

    def test_a_layout_is_replaced_and_nothing_else_is(self) -> None:
        layout = self.make()
        self.check(self.make(amd64=elf(AMD64, ((1, b"more"),))))
        self.assertEqual(len(list((layout / "blobs" / "sha256").iterdir())), 7)
        other = self.folder / "other"
        other.mkdir()
        (other / "file").touch()
        with self.assertRaises(oci.Unreadable):
            self.make("other")

    def test_binaries_that_do_not_run_alone_are_seen(self) -> None:
        needed = struct.pack("<QQQQ", 1, 7, 0, 0)
        cases = [
            (elf(ARM64), "is for machine 183, not for amd64"),
            (elf(AMD64, ((3, b"/lib/ld.so\0"),)), "asks for a program interpreter"),
            (elf(AMD64, ((2, needed),)), "needs a shared library"),
            (elf(AMD64, ((1, b""), (1, b"")))[:100], "is cut short"),
            (b"#!/bin/sh\n", "is no 64-bit ELF file"),
        ]
        for number, (binary, expected) in enumerate(cases):
            with self.subTest(expected):
                self.check(self.make(str(number), amd64=binary), expected)
        # Position-independent and static: it relocates itself.
        relative = struct.pack("<QQQQ", 7, 0, 0, 0)
        self.check(self.make("pie", amd64=elf(AMD64, ((2, relative),))))

    def test_blobs_that_changed_are_seen(self) -> None:
        layout = self.make()
        for path in sorted((layout / "blobs" / "sha256").iterdir()):
            before = path.read_bytes()
            if before[:2] == gzip.compress(b"")[:2]:
                path.write_bytes(before + b"\0")
                self.check(layout, "the digest of the blob", "size")
            else:
                path.write_bytes(before.replace(b'"', b' "', 1))
                self.check(layout, "the digest of the blob", "size")
            path.write_bytes(before)
            path.rename(path.with_name("elsewhere"))
            self.assertIn("there is no blob", "\n".join(oci.check(layout).findings))
            path.with_name("elsewhere").rename(path)
        self.check(layout)

    def test_a_blob_that_nothing_leads_to_is_seen(self) -> None:
        layout = self.make()
        (layout / "blobs" / "sha256" / "stray").touch()
        self.check(layout, "nothing leads to it")

    def test_exit_codes(self) -> None:
        layout = self.make()
        cases = [
            (["check", str(layout)], 0),
            (["check", "--output", "json", str(layout)], 0),
            (["check", str(self.folder / "none")], 2),
            (["make", "--version", "1"], 2),
        ]
        for words, expected in cases:
            self.assertEqual(self.run_quietly(words), expected, words)
        (layout / "blobs" / "sha256" / "stray").touch()
        self.assertEqual(self.run_quietly(["check", str(layout)]), 1)

    def run_quietly(self, words: list[str]) -> int:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                return oci.main(words)
            except SystemExit as end:
                return int(end.code or 0)


if __name__ == "__main__":
    unittest.main()
