#!/usr/bin/env python3
"""Copies the pages of the site into the source folder of an mdBook, with Python's standard library only.

  prepare.py FOLDER

FOLDER/src gets the pages of docs/SUMMARY.md at their paths in the repository, all other files of docs, and every file that a
page links to. A folder that a page links to becomes a page that lists its files. Exit codes: 0 done, 1 a page that is not in
SUMMARY.md, or a link without a target, 2 wrong usage or a file that cannot be read.
"""

import pathlib
import posixpath
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUMMARY = "docs/SUMMARY.md"
# Lists in SUMMARY.md that are made from the pages of a folder.
LISTS = {"rules": "docs/rules", "adr": "docs/adr"}
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s#]+)(#[^)\s]*)?\)|!\[[^\]\n]*\]\(([^)\s]+)\)")
# A larger file does not belong on a site.
TEXTS_MAX_BYTES = 4 * 1024 * 1024


class Problem(Exception):
    """A page or a link that the site cannot have."""


def resolve(page: str, target: str) -> str | None:
    """The path in the repository of a link; nothing for addresses."""
    if re.match(r"[a-z][a-z+.-]*:", target) or target.startswith("//"):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    if path.startswith(("..", "/")):
        raise Problem(f"{page}: the link {target} leaves the repository")
    return path


def without_code(text: str) -> str:
    """The text without blocks and spans of code, which contain no links."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2 *$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def links(page: str, text: str) -> set[str]:
    found = set()
    for link, _, image in LINK.findall(without_code(text)):
        path = resolve(page, link or image)
        if path is not None:
            found.add(path)
    return found


def title(path: pathlib.Path) -> str:
    heading = re.search(r"^# +(.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not heading:
        raise Problem(f"{path} has no title")
    return heading[1].replace("`", "")


def summary(root: pathlib.Path) -> str:
    """SUMMARY.md with the lists of pages, and with paths from the root of the repository."""
    lines = []
    text = (root / SUMMARY).read_text(encoding="utf-8")
    linked = {resolve(SUMMARY, target) for target in re.findall(r"\]\(([^)]+)\)", text)}
    for line in text.splitlines():
        comment = re.fullmatch(r"( *)<!-- (\w+) -->", line)
        if comment:
            folder = LISTS.get(comment[2])
            if folder is None:
                raise Problem(f"{SUMMARY}: there is no list {comment[2]}")
            pages = [f"{folder}/{path.name}" for path in sorted((root / folder).glob("*.md"))]
            lines += [f"{comment[1]}- [{title(root / page)}]({page})" for page in pages if page not in linked]
        else:
            lines.append(re.sub(r"\]\(([^)]+)\)", lambda match: f"]({resolve(SUMMARY, match[1])})", line))
    return "\n".join(lines) + "\n"


def listing(root: pathlib.Path, folder: str) -> str:
    """The page of a folder without a README."""
    files = sorted(path.relative_to(root / folder).as_posix() for path in (root / folder).rglob("*") if path.is_file())
    items = [f"- [{name}]({name})" for name in files]
    return "\n".join([f"# {folder}", "", *items, ""])


def as_index(page: str) -> str:
    """The name of a page in the site: README.md is the page of its folder."""
    return re.sub(r"(^|/)README\.md$", r"\1index.md", page)


def with_pages(page: str, text: str, folders: set[str]) -> str:
    """The text with links to the pages of folders: a server may not add their names by itself."""
    def replace(match: re.Match) -> str:
        path = resolve(page, match[1])
        if path in folders:
            return f"]({posixpath.join(match[1], 'index.md')}{match[2] or ''})"
        return f"]({as_index(match[1])}{match[2] or ''})" if path is not None else match[0]
    return re.sub(r"\]\(([^)\s#]+)(#[^)\s]*)?\)", replace, text)


def folder_pages(root: pathlib.Path, folders: set[str], contents: dict[str, str], files: set[str]) -> str:
    """Adds the pages of folders without one, and their files; returns their lines of SUMMARY.md."""
    lines: list[str] = []
    pages = set(contents)
    for folder in sorted(folders):
        files |= {path.relative_to(root).as_posix() for path in (root / folder).rglob("*") if path.is_file()}
        readme = f"{folder}/README.md"
        if readme not in pages:
            path = root / readme
            contents[readme] = path.read_text(encoding="utf-8") if path.is_file() else listing(root, folder)
            lines.append(f"- [{folder}]({readme})")
        for page in sorted(path.relative_to(root).as_posix() for path in (root / folder).rglob("*.md")):
            if page not in pages and page != readme:
                # An example, such as a rule with a head in YAML: it is shown as it is written.
                text = (root / page).read_text(encoding="utf-8")
                contents[page] = f"# {title(root / page)}\n\n`````markdown\n{text}`````\n"
                lines.append(f"  - [{title(root / page)}]({page})")
    return "\n# Files\n\n" + "\n".join(lines) + "\n" if lines else ""


def copy(root: pathlib.Path, path: str, out: pathlib.Path) -> None:
    source = root / path
    if source.stat().st_size > TEXTS_MAX_BYTES:
        raise Problem(f"{path} is too large for the site")
    (out / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, out / path)


def prepare(root: pathlib.Path, out: pathlib.Path) -> list[str]:
    """Fills the folder; returns the pages of docs that SUMMARY.md does not list, and links without a target."""
    book = summary(root)
    pages = re.findall(r"\]\(([^)]+)\)", book)
    findings = [f"{page} is listed twice in {SUMMARY}" for page in sorted({page for page in pages if pages.count(page) > 1})]
    existing = {path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md")} - {SUMMARY}
    findings += [f"{page} is not in {SUMMARY}" for page in sorted(existing - set(pages))]
    files = {path.relative_to(root).as_posix() for path in (root / "docs").rglob("*") if path.is_file() and path.suffix != ".md"}
    folders, contents = set(), {}
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        for target in sorted(links(page, text)):
            if (root / target).is_dir():
                folders.add(target)
            elif (root / target).is_file():
                files.add(target)
            else:
                findings.append(f"{page}: {target} does not exist")
        contents[page] = text
    book += folder_pages(root, folders, contents, files)
    for page, text in contents.items():
        path = out / as_index(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(with_pages(page, text, folders), encoding="utf-8")
    for path in sorted(files - set(contents)):
        copy(root, path, out)
    (out / "SUMMARY.md").write_text(with_pages("SUMMARY.md", book, set()), encoding="utf-8")
    return findings


def main(words: list[str]) -> int:
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(words[0])
    try:
        shutil.rmtree(folder / "src", ignore_errors=True)
        (folder / "src").mkdir(parents=True)
        shutil.copyfile(pathlib.Path(__file__).resolve().parent / "book.toml", folder / "book.toml")
        findings = prepare(ROOT, folder / "src")
    except (Problem, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
