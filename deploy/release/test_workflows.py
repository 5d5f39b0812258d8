"""The workflows of GitHub run existing recipes, with few permissions, and with no action of a third party."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def workflows() -> dict[str, str]:
    found = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yaml")}
    assert set(found) == {"ci.yaml", "nightly.yaml", "release.yaml"}, found.keys()
    return found


class Workflows(unittest.TestCase):
    def test_recipes_exist(self) -> None:
        recipes = set(re.findall(r"^([a-z][a-z-]*)(?: [^:\n]*)?:(?!=)", read("justfile"), flags=re.MULTILINE))
        used = []
        for name, text in workflows().items():
            for line in re.findall(r"run: just (.+)$", text, flags=re.MULTILINE):
                # Recipes without parameters may follow each other.
                used += [line.split()[0]] if re.search(r"[\d\"$]", line) else line.split()
            if name == "nightly.yaml":
                used += re.search(r"recipe: \[(.+)\]", text)[1].split(", ")
        used = [recipe for recipe in used if recipe != "${{"]
        self.assertGreaterEqual(len(used), 9)
        self.assertEqual([recipe for recipe in used if recipe not in recipes], [])

    def test_nightly_runs_all_of_its_parts(self) -> None:
        line = re.search(r"^nightly: (.+)$", read("justfile"), flags=re.MULTILINE)[1]
        parts = set(re.sub(r'\(fuzz "\d+"\)', "", line).split())
        self.assertEqual(parts, set(re.search(r"recipe: \[(.+)\]", workflows()["nightly.yaml"])[1].split(", ")))
        targets = re.search(r"\|\| set -- (.+)$", read("tests/fuzz/run"), flags=re.MULTILINE)[1].split()
        lists = re.search(r"targets:\n((?: +- .+\n)+)", workflows()["nightly.yaml"])[1]
        self.assertEqual(sorted(targets), sorted(lists.replace("- ", " ").split()))

    def test_only_the_release_may_write(self) -> None:
        for name, text in workflows().items():
            self.assertTrue(re.search(r"^permissions:\n  contents: read\n\S", text, flags=re.MULTILINE), name)
            writes = text.count(": write")
            self.assertEqual(writes, 1 if name == "release.yaml" else 0, name)

    def test_checkout_is_the_only_action_and_keeps_no_token(self) -> None:
        for name, text in workflows().items():
            actions = re.findall(r"uses: (.+)$", text, flags=re.MULTILINE)
            self.assertEqual(set(actions), {"actions/checkout@v4"}, name)
            self.assertEqual(text.count("persist-credentials: false"), len(actions), name)


if __name__ == "__main__":
    unittest.main()
