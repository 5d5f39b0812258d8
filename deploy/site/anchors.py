#!/usr/bin/env python3
"""Checks the links of built HTML pages, with their anchors, which mdBook's link check leaves out: anchors.py FOLDER.

Links to other hosts are not followed. Uses Python's standard library only. Exit codes: 0 done, 1 findings, 2 wrong usage or a
page that cannot be read.
"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The ids of a page, and the addresses of its links and images."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif (tag, name) in (("a", "href"), ("img", "src")) and value:
                self.addresses.append(value)


def read(path: pathlib.Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def check(folder: pathlib.Path) -> list[str]:
    pages = {path.resolve(): read(path) for path in sorted(folder.rglob("*.html"))}
    findings = []
    for path, page in pages.items():
        # The pages that mdBook adds have other roots.
        if path.name in ("print.html", "404.html", "toc.html"):
            continue
        for address in page.addresses:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            name = urllib.parse.unquote(parts.path)
            target = (path.parent / name).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            where = f"{path.relative_to(folder.resolve())}: {address}"
            if not target.is_file():
                findings.append(f"{where}: there is no such file")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
                findings.append(f"{where}: the page has no such section")
    return sorted(set(findings)) if pages else [f"{folder} has no pages"]


def main(words: list[str]) -> int:
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        findings = check(pathlib.Path(words[0]))
    except (OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
