"""Prepares a small site, and breaks it in each way that the checks detect."""

import pathlib
import re
import tempfile
import unittest

import anchors
import prepare


class Site(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.out = pathlib.Path(folder.name) / "root", pathlib.Path(folder.name) / "out"
        self.write("README.md", "# Top\n\n[a](docs/a.md) [rules](docs/rules/README.md) ![b](docs/images/b.svg)\n")
        self.write("docs/a.md", "# `A`\n\n[rules](rules/README.md#one) [files](../examples) [file](../Cargo.toml) `[no](link.md)`\n")
        self.write("docs/rules/README.md", "# Rules\n\n[up](../a.md) [elsewhere](https://example.com/README.md)\n")
        self.write("docs/rules/R1.md", "# R1\n\n```\n[no](link.md)\n```\n")
        self.write("docs/adr/0001.md", "# 1. Decision\n")
        self.write("docs/images/b.svg", "<svg/>")
        self.write("examples/one.yaml", "a: b\n")
        self.write("examples/two.md", "---\nhead: [x]\n---\n# Two\n")
        self.write("Cargo.toml", "")
        lists = "- [Rules](rules/README.md)\n  <!-- rules -->\n- [One](adr/0001.md)\n  <!-- adr -->\n"
        self.write("docs/SUMMARY.md", "# Summary\n\n[Top](../README.md)\n\n- [A](a.md)\n" + lists)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.out / name).read_text(encoding="utf-8")

    def test_complete_site_has_no_findings(self) -> None:
        self.assertEqual(prepare.prepare(self.root, self.out), [])
        summary = self.read("SUMMARY.md")
        for line in ("[Top](index.md)", "- [A](docs/a.md)", "- [Rules](docs/rules/index.md)", "  - [R1](docs/rules/R1.md)",
                     "- [examples](examples/index.md)", "  - [Two](examples/two.md)"):
            self.assertIn(line, summary)
        self.assertIn("(rules/index.md#one) [files](../examples/index.md) [file](../Cargo.toml)", self.read("docs/a.md"))
        self.assertIn("https://example.com/README.md", self.read("docs/rules/index.md"))
        self.assertIn("- [one.yaml](one.yaml)", self.read("examples/index.md"))
        self.assertIn("`````markdown\n---\n", self.read("examples/two.md"))
        for copied in ("Cargo.toml", "examples/one.yaml", "docs/images/b.svg"):
            self.assertTrue((self.out / copied).is_file(), copied)

    def test_forgotten_page_and_broken_link_are_findings(self) -> None:
        self.write("docs/new.md", "# New\n")
        self.write("docs/a.md", "# A\n\n[x](missing.md)\n")
        findings = prepare.prepare(self.root, self.out)
        self.assertEqual(findings, ["docs/new.md is not in docs/SUMMARY.md", "docs/a.md: docs/missing.md does not exist"])

    def test_link_out_of_the_repository_is_an_error(self) -> None:
        self.write("docs/a.md", "# A\n\n[x](../../secret.md)\n")
        with self.assertRaises(prepare.Problem):
            prepare.prepare(self.root, self.out)

    def test_links_of_built_pages_are_checked_with_anchors(self) -> None:
        self.write("index.html", '<h1 id="top">a</h1><a href="sub/page.html#there">a</a><a href="#top">b</a><a href="https://a/#x">c</a>')
        self.write("sub/page.html", '<h2 id="there">b</h2><img src="../picture.svg">')
        self.write("picture.svg", "")
        self.assertEqual(anchors.check(self.root), [])
        self.write("sub/page.html", '<a href="../index.html#gone">a</a><a href="none.html">b</a>')
        findings = anchors.check(self.root)
        self.assertEqual(len(findings), 3, findings)
        self.assertIn("the page has no such section", findings[0])
        self.assertEqual(anchors.check(self.root / "docs/images"), [f"{self.root}/docs/images has no pages"])


class Playground(unittest.TestCase):
    def test_page_has_the_elements_that_its_script_uses(self) -> None:
        page = (prepare.ROOT / "docs/playground.md").read_text(encoding="utf-8")
        script = (prepare.ROOT / "deploy/site/playground/playground.js").read_text(encoding="utf-8")
        used = {f"playground-{name}" for name in re.findall(r'element\("([a-z]+)"\)', script)}
        self.assertGreater(len(used), 8)
        self.assertEqual(used, set(re.findall(r'id="(playground-[a-z]+)"', page)))


if __name__ == "__main__":
    unittest.main()
