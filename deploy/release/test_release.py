"""Tests the scripts of a release: equal bytes, versions, signatures, and each way in which a release can be broken."""

import contextlib
import gzip
import io
import json
import os
import pathlib
import struct
import subprocess
import tarfile
import tempfile
import unittest
import zlib

import archive
import changelog
import krew
import licenses
import provenance
import sbom

HERE = pathlib.Path(__file__).resolve().parent
TIME = 1_700_000_000
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def run(*words: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, env=os.environ | environment)


def quiet(main, *words: object) -> tuple[int, str]:
    """The exit code of a script, and all that it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        return main([str(word) for word in words]), out.getvalue()


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name: str, text: str, mode: int = 0o644) -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path


class Archives(Folder):
    def test_same_files_give_same_bytes(self) -> None:
        made = []
        for name, mode in (("first", 0o644), ("second", 0o600)):
            # Another order of creation, other times and rights of the group.
            for file in sorted(("b", "a", "z/c"), reverse=name == "second"):
                self.write(f"{name}/{file}", file, mode)
            os.utime(self.folder / name / "a", (len(name), len(name)))
            out = self.folder / f"{name}.tar.gz"
            archive.write(out, archive.parse([f"{self.folder}/{name}=top"]), TIME)
            made.append(out.read_bytes())
        self.assertEqual(made[0], made[1])
        with tarfile.open(fileobj=io.BytesIO(made[0])) as found:
            self.assertEqual(found.getnames(), ["top", "top/a", "top/b", "top/z", "top/z/c"])
            self.assertEqual({(entry.uid, entry.gid, entry.mtime) for entry in found}, {(0, 0, TIME)})

    def test_programs_stay_executable(self) -> None:
        self.write("program", "", 0o700)
        with tarfile.open(fileobj=io.BytesIO(archive.tar({"program": self.folder / "program"}, TIME))) as found:
            self.assertEqual(found.getmember("program").mode, 0o755)

    def test_invalid_sources_are_errors(self) -> None:
        file = self.write("file", "")
        (self.folder / "link").symlink_to(file)
        for words in (
            ["nothing"], [f"{file}=/absolute"], [f"{file}=../above"], [f"{self.folder}/missing=a"],
            [f"{self.folder}/link=a"], [f"{file}=a", f"{file}=a"],
        ):
            with self.subTest(words):
                code, text = quiet(archive.main, "--time", TIME, self.folder / "out.tar", *words)
                self.assertEqual((code, text[:6]), (2, "error:"))
        self.assertEqual(quiet(archive.main, "--time", TIME, self.folder / "out.zip", f"{file}=a")[0], 2)


class Versions(Folder):
    def tree(self, entry: str, version: str = "1.2.0") -> None:
        self.write("Cargo.toml", f'[workspace.package]\nversion = "{version}"\n')
        self.write("charts/lockkeeper/Chart.yaml", f"version: {version}\nappVersion: {version}\n")
        self.write("CHANGELOG.md", f"# Changelog\n\n## Unreleased\n\n- Next.\n\n## {version} - 2026-01-01\n\n{entry}\n\n## 1.1.0\n\n- Old.\n")

    def check(self, *expected: str, version: str = "1.2.0", last: str | None = "v1.1.0") -> None:
        findings = changelog.check(self.folder, version, False, last)
        self.assertEqual(len(findings), len(expected), findings)
        for finding, part in zip(findings, expected):
            self.assertIn(part, finding)

    def test_complete_tree_has_no_findings(self) -> None:
        self.tree("- New.")
        self.check()

    def test_each_version_must_be_the_same(self) -> None:
        self.tree("- New.")
        self.check("Cargo.toml", "Chart.yaml: version", "Chart.yaml: appVersion", "no section", version="1.3.0")

    def test_version_must_be_above_the_last(self) -> None:
        self.tree("- New.")
        self.check("not above v1.2.0", last="v1.2.0")
        self.check("not above v1.10.0", last="v1.10.0")

    def test_empty_section_is_a_finding(self) -> None:
        self.tree("Nothing.")
        self.check("lists no change")

    def test_breaking_change_needs_major_version(self) -> None:
        self.tree("- **Breaking:** the key `a` is `b`.")
        self.check("breaking changes", last="v1.1.0")
        self.check(last="v0.9.0")

    def test_policy_of_versions(self) -> None:
        cases = [
            ("2.0.0", "1.9.9", True), ("1.9.0", "1.8.0", False), ("0.2.0", "0.1.5", True), ("0.1.6", "0.1.5", False),
            ("1.0.0", "0.9.0", True), ("2.0.0-rc.1", "1.0.0", True),
        ]
        for new, last, expected in cases:
            with self.subTest(f"{last} to {new}"):
                self.assertEqual(quiet(changelog.main, "may-break", "--last", f"v{last}", new)[0], 0 if expected else 1)
        self.assertEqual(quiet(changelog.main, "may-break", "1.0.0")[0], 2)
        self.assertLess(changelog.Version.parse("1.0.0-rc.1"), changelog.Version.parse("1.0.0"))
        for text in ("1.0", "v1.0.0", "01.0.0", "1.0.0 ", "$(id)"):
            with self.subTest(text), self.assertRaises(changelog.Unreadable):
                changelog.Version.parse(text)

    def test_upgrade_notes_come_first_and_are_complete(self) -> None:
        text = "- New.\n- **Deprecated:** the flag\n  `--old`.\n\n### Other\n\n- **Breaking:** the key.\n\nText.\n"
        self.assertEqual(changelog.upgrade_notes(text), ["**Breaking:** the key.", "**Deprecated:** the flag `--old`."])
        printed = changelog.notes("1.0.0", text)
        self.assertLess(printed.index("the key"), printed.index("New."))
        self.assertIn("No entry of this version needs an action.", changelog.notes("1.0.0", "- New."))

    def test_rehearsal_takes_unreleased_changes(self) -> None:
        self.tree("- New.")
        changes = (self.folder / "CHANGELOG.md").read_text()
        self.assertIsNone(changelog.section(changes, "9.9.9", False))
        self.assertEqual(changelog.section(changes, "9.9.9", True), "- Next.")

    def test_changelog_of_this_repository_is_readable(self) -> None:
        text = (HERE.parent.parent / "CHANGELOG.md").read_text(encoding="utf-8")
        self.assertGreater(len(changelog.entries(changelog.sections(text)["Unreleased"])), 0)


def elf(contents: bytes) -> bytes:
    """A 64-bit ELF file with one section, `.dep-v0`."""
    names = b"\0.dep-v0\0"
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    table = 64 + len(names) + len(contents)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 2, 0)
    sections = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64 + len(names), len(contents), 0, 0, 1, 0)
    return head + names + contents + sections


class Sboms(Folder):
    def bom(self, *names: str) -> dict:
        component = {"name": "lockkeeper", "version": "1.0.0", "bom-ref": f"path+file://{self.folder}/cli#lockkeeper@1.0.0"}
        components = [{"name": name, "version": "1.0.0", "purl": f"pkg:cargo/{name}@1.0.0"} for name in names]
        return {"bomFormat": "CycloneDX", "specVersion": "1.5", "metadata": {"component": component}, "components": components}

    def binary(self, *names: str) -> bytes:
        packages = [{"name": name, "version": "1.0.0"} for name in ("lockkeeper", *names)]
        return elf(zlib.compress(json.dumps({"packages": packages}).encode()))

    def test_local_paths_are_removed(self) -> None:
        found = sbom.normalize(self.bom("serde"), str(self.folder))
        self.assertEqual(found["metadata"]["component"]["bom-ref"], "local:cli#lockkeeper@1.0.0")
        other = self.bom("serde")
        other["metadata"]["component"]["bom-ref"] = "path+file:///elsewhere/cli#lockkeeper@1.0.0"
        self.assertEqual(found, sbom.normalize(other, "/elsewhere"))
        self.assertNotEqual(found["serialNumber"], sbom.normalize(self.bom("syn"), str(self.folder))["serialNumber"])

    def test_path_that_remains_is_an_error(self) -> None:
        bom = self.bom() | {"comment": f"built in {self.folder}"}
        with self.assertRaises(sbom.Unreadable):
            sbom.normalize(bom, str(self.folder))

    def test_difference_to_the_binary_is_found(self) -> None:
        self.assertEqual(sbom.compare(self.bom("serde"), self.binary("serde")), [])
        self.assertEqual(sbom.compare(self.bom(), self.binary("serde")), ["serde 1.0.0 is in the binary, but not in the SBOM"])
        self.assertEqual(sbom.compare(self.bom("syn"), self.binary()), ["syn 1.0.0 is in the SBOM, but not in the binary"])

    def test_broken_binaries_are_errors(self) -> None:
        whole = self.binary("serde")
        for broken in (b"", b"#!/bin/sh", whole[:70], whole[:-64], elf(b""), elf(zlib.compress(b"[]")), elf(zlib.compress(b"{}"))):
            with self.subTest(broken[:8]), self.assertRaises(sbom.Unreadable):
                sbom.packages(broken)


class Licenses(Folder):
    def package(self, name: str, text: str | None, license: str | None = "MIT") -> dict:
        path = self.write(f"{name}/Cargo.toml", "")
        if text is not None:
            self.write(f"{name}/LICENSE-MIT", text)
        source = None if name == "own" else "registry"
        return {
            "id": name, "name": name, "version": "1.0.0", "license": license, "license_file": None, "source": source,
            "manifest_path": str(path),
        }

    def metadata(self, **packages: tuple[dict, list[tuple[str, str | None]]]) -> dict:
        nodes = [
            {"id": name, "deps": [{"pkg": to, "dep_kinds": [{"kind": kind}]} for to, kind in deps]}
            for name, (_, deps) in packages.items()
        ]
        return {"packages": [package for package, _ in packages.values()], "resolve": {"nodes": nodes}}

    def test_dependencies_of_tests_are_left_out(self) -> None:
        metadata = self.metadata(
            own=(self.package("own", None), [("used", None), ("built", "build"), ("tested", "dev")]),
            used=(self.package("used", "Text."), []),
            built=(self.package("built", "Text.  \n"), [("used", None)]),
            tested=(self.package("tested", "Other."), []),
        )
        packages = licenses.closure(metadata, "own")
        self.assertEqual([one["name"] for one in packages], ["built", "own", "used"])
        text = licenses.document(packages)
        self.assertEqual(text.count("Text."), 1, "equal texts are printed once")
        self.assertIn("built 1.0.0, used 1.0.0", text)
        self.assertNotIn("own 1.0.0", text)

    def test_package_without_text_is_listed(self) -> None:
        self.assertIn("contain no text of their licence", licenses.document([self.package("bare", None)]))


class Provenance(Folder):
    def statement(self) -> dict:
        lock, file = self.write("Cargo.lock", "lock"), self.write("out/file.tar.gz", "contents")
        return provenance.make("1.0.0", COMMIT, lock, {"rustc": "1"}, [file])

    def test_statement_matches_its_files(self) -> None:
        statement = self.statement()
        self.assertEqual(provenance.check(statement, self.folder / "out"), [])
        self.assertEqual(statement, self.statement())
        self.write("out/file.tar.gz", "changed")
        self.assertIn("the digest is", provenance.check(statement, self.folder / "out")[0])

    def test_hostile_names_and_empty_statements_are_findings(self) -> None:
        statement = self.statement()
        for name in ("../Cargo.lock", "/etc/passwd", "missing"):
            statement["subject"][0]["name"] = name
            self.assertEqual(len(provenance.check(statement, self.folder / "out")), 1)
        statement["subject"] = []
        self.assertEqual(provenance.check(statement, self.folder), ["the statement names no file"])
        self.assertEqual(len(provenance.check({}, self.folder)), 2)


class Krew(Folder):
    def test_manifest_names_each_architecture(self) -> None:
        files = [self.write(f"lockkeeper-1.0.0-linux-{name}.tar.gz", name) for name in ("amd64", "arm64")]
        found = json.loads(krew.manifest("1.0.0", "https://example.com/v1.0.0/", files))
        platforms = found["spec"]["platforms"]
        self.assertEqual([one["selector"]["matchLabels"]["arch"] for one in platforms], ["amd64", "arm64"])
        self.assertEqual(platforms[0]["uri"], "https://example.com/v1.0.0/lockkeeper-1.0.0-linux-amd64.tar.gz")
        for words in (("1.0.0", "example.com", files), ("1.0.0", "https://example.com", [self.write("other.zip", "")])):
            with self.assertRaises(krew.Unreadable):
                krew.manifest(*words)


class Releases(Folder):
    """A folder with a release of one archive, signed."""

    def setUp(self) -> None:
        super().setUp()
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        name = f"lockkeeper-1.0.0-linux-{machine}"
        self.archive = self.folder / f"release/{name}.tar.gz"
        binary = self.write("bin/lockkeeper", "#!/bin/sh\necho lockkeeper 1.0.0\n", 0o755)
        self.release = self.archive.parent
        self.release.mkdir()
        archive.write(self.archive, {f"{name}/lockkeeper": binary}, TIME)
        statement = provenance.make("1.0.0", COMMIT, self.write("Cargo.lock", ""), {}, [self.archive])
        self.write("release/lockkeeper-1.0.0.intoto.json", json.dumps(statement))
        self.sums()
        self.key, self.public = self.make_key("key")
        signed = run(HERE / "sign", self.release, self.key)
        self.assertEqual(signed.returncode, 0, signed.stderr)

    def make_key(self, name: str) -> tuple[pathlib.Path, pathlib.Path]:
        key, public = self.folder / f"{name}.pem", self.folder / f"{name}.pub"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True)
        key.chmod(0o600)
        subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
        return key, public

    def sums(self) -> None:
        command = "sha256sum -- *.json *.tar.gz > SHA256SUMS"
        subprocess.run(command, shell=True, check=True, cwd=self.release)

    def verify(self, code: int, *parts: str, key: pathlib.Path | None = None) -> None:
        found = run(HERE / "verify", self.release, key or self.public)
        self.assertEqual(found.returncode, code, found.stderr)
        for part in parts:
            self.assertIn(part, found.stderr)

    def install(self, *words: object) -> subprocess.CompletedProcess:
        return run(HERE / "install.sh", "--version", "1.0.0", "--to", self.folder / "to", *words)

    def test_signed_release_is_verified(self) -> None:
        self.verify(0, "verified 2 files")
        self.assertIn("the signature was not verified", run(HERE / "verify", self.release).stderr)

    def test_changed_releases_are_rejected(self) -> None:
        _, other = self.make_key("other")
        self.verify(1, "not of this key", key=other)
        self.write("release/extra.txt", "")
        self.verify(1, "extra.txt is not listed")
        (self.release / "extra.txt").unlink()
        self.archive.write_bytes(self.archive.read_bytes() + b"0")
        self.verify(1, "a file differs")
        self.sums()
        self.verify(1, "not of this key")
        (self.release / "SHA256SUMS.sig").unlink()
        self.verify(1, "no signature")

    def test_other_keys_do_not_sign(self) -> None:
        self.key.chmod(0o644)
        self.assertIn("other users may read", run(HERE / "sign", self.release, self.key).stderr)
        rsa = self.folder / "rsa.pem"
        subprocess.run(["openssl", "genrsa", "-out", rsa, "2048"], check=True, capture_output=True)
        rsa.chmod(0o600)
        for key in (rsa, self.write("text", "", 0o600), self.folder / "missing"):
            self.assertNotEqual(run(HERE / "sign", self.release, key).returncode, 0)
        self.verify(0)

    def test_installer_writes_one_file(self) -> None:
        done = self.install("--from", self.release, "--key", self.public)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("installed: lockkeeper 1.0.0", done.stdout)
        self.assertEqual([path.name for path in (self.folder / "to").iterdir()], ["lockkeeper"])
        again = self.install("--from", self.release, "--no-signature")
        self.assertIn("do NOT verify a signature", again.stdout)
        self.assertIn("which replaces the present one", again.stdout)

    def test_dry_run_writes_nothing(self) -> None:
        done = self.install("--from", self.release, "--key", self.public, "--dry-run")
        self.assertEqual((done.returncode, (self.folder / "to").exists()), (0, False))
        self.assertIn("nothing was read or written", done.stdout)

    def test_installer_rejects_what_it_cannot_verify(self) -> None:
        _, other = self.make_key("other")
        cases: list[tuple[int, str, list[object]]] = [
            (2, "--from is missing", ["--key", self.public]),
            (2, "--key is missing", ["--from", self.release]),
            (2, "is not encrypted", ["--from", "http://example.com", "--key", self.public]),
            (2, "is not a version", ["--from", self.release, "--version", "../x", "--key", self.public]),
            (2, "unknown option", ["--sudo"]),
            (1, "is not of", ["--from", self.release, "--key", other]),
            (1, "cannot read", ["--from", self.folder / "nowhere", "--key", self.public]),
            (1, "cannot read", ["--from", self.release, "--version", "2.0.0", "--key", self.public]),
        ]
        for code, part, words in cases:
            with self.subTest(part):
                found = self.install(*words)
                self.assertEqual(found.returncode, code, found.stderr)
                self.assertIn(part, found.stderr)
        self.archive.write_bytes(gzip.compress(b"other"))
        found = self.install("--from", self.release, "--key", self.public)
        self.assertIn("checksum", found.stderr)
        self.assertFalse((self.folder / "to").exists())


class CrdsDiff(Folder):
    """A repository with the scripts, and a program instead of lockkeeper that exits with a given code."""

    def setUp(self) -> None:
        super().setUp()
        for name in ("last-tag", "crds-diff", "changelog.py"):
            self.write(f"deploy/release/{name}", (HERE / name).read_text(encoding="utf-8"), 0o755)
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *name, *words], check=True, cwd=self.folder, capture_output=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a")

    def check(self, version: str, exit_code: int, expected: int, part: str) -> None:
        program = self.write("program", f'#!/bin/sh\necho "$@"\nexit {exit_code}\n', 0o755)
        found = run(self.folder / "deploy/release/crds-diff", version, program)
        self.assertEqual(found.returncode, expected, found.stderr)
        self.assertIn(part, found.stderr + found.stdout)

    def test_without_release_nothing_is_compared(self) -> None:
        self.check("0.1.0", 1, 0, "were not compared")

    def test_breaking_change_needs_the_right_version(self) -> None:
        self.git("tag", "v0.1.0")
        self.git("tag", "other")
        self.commit()
        self.git("tag", "v0.2.0-rc.1")
        self.commit()
        self.check("0.1.1", 0, 0, "crds diff v0.1.0:deploy/kustomize/base/lockkeeper.yaml deploy/kustomize/base/lockkeeper.yaml")
        self.check("0.1.1", 1, 1, "0.1.1 may not have")
        self.check("0.2.0", 1, 0, "0.2.0 may have them")
        self.check("0.2.0", 2, 2, "")

    def test_tag_of_this_commit_is_not_the_last_release(self) -> None:
        self.git("tag", "v0.1.0")
        self.commit()
        self.git("tag", "v0.2.0")
        self.check("0.2.0", 0, 0, "no breaking change since v0.1.0")


class Run(unittest.TestCase):
    def test_wrong_usage_is_rejected_before_any_work(self) -> None:
        for words, part in (
            (["0.1.0"], "--key is missing"),
            (["--unsigned"], "VERSION is missing"),
            (["--unsigned", "--without-checks", "0.1.0"], "need --rehearsal"),
            (["--unsigned", "--binaries", "/", "0.1.0"], "need --rehearsal"),
            (["--unsigned", "0.1.0", "0.2.0"], "two versions"),
            (["--force", "0.1.0"], "unknown option --force"),
        ):
            with self.subTest(words):
                found = run(HERE / "run", *words)
                self.assertEqual((found.returncode, part in found.stderr), (2, True), found.stderr)
        found = run(HERE / "run", "--unsigned", "0.1.0", LOCKKEEPER_RELEASE_PROFILE="release")
        self.assertEqual((found.returncode, "needs --rehearsal" in found.stderr), (2, True), found.stderr)


if __name__ == "__main__":
    unittest.main()
