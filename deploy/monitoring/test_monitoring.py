"""The dashboards and alerts of the chart use existing metrics, and each alert has a runbook and a test that fires it."""

import pathlib
import re
import unittest

import dashboards

ROOT = dashboards.ROOT
ALERTS = (ROOT / "charts/lockkeeper/monitoring/alerts.yaml").read_text(encoding="utf-8")
TEST = (pathlib.Path(__file__).resolve().parent / "alerts_test.yaml").read_text(encoding="utf-8")
RUNBOOKS = (ROOT / "docs/runbooks.md").read_text(encoding="utf-8")


def alerts() -> dict[str, tuple[str, str]]:
    """The expression and the whole text of each alert."""
    parts = re.split(r"^  - alert: (\w+)\n", ALERTS, flags=re.MULTILINE)
    found = {}
    for name, text in zip(parts[1::2], parts[2::2]):
        # Up to the next key of the rule: an expression may span lines.
        expression = re.search(r"^    expr: (.+?)(?=^    \w+:)", text, flags=re.MULTILINE | re.DOTALL)[1]
        found[name] = (expression, text)
    return found


class Dashboards(unittest.TestCase):
    def test_files_are_current_and_show_every_metric(self) -> None:
        self.assertEqual(dashboards.check(dashboards.read_metrics(dashboards.METRICS)), [])

    def test_wrong_queries_are_found(self) -> None:
        metrics = {
            "lockkeeper_a_total": dashboards.Metric("counter", frozenset({"result"}), ""),
            "lockkeeper_b": dashboards.Metric("gauge", frozenset(), ""),
            "lockkeeper_c": dashboards.Metric("histogram", frozenset({"path"}), ""),
        }
        for query in (
            "sum by (result) (rate(lockkeeper_a_total[5m]))", 'rate(lockkeeper_a_total{result="x"}[5m])', "max(lockkeeper_b)",
            "histogram_quantile(0.9, sum by (le, path) (rate(lockkeeper_c_bucket[5m])))",
        ):
            self.assertEqual(dashboards.problems(query, metrics), [], query)
        for query, part in (
            ("lockkeeper_unknown", "there is no metric lockkeeper_unknown"),
            ("lockkeeper_b_bucket", "there is no metric lockkeeper_b_bucket"),
            ('rate(lockkeeper_a_total{verdict="x"}[5m])', "has no label verdict"),
            ("sum by (queue) (lockkeeper_b)", "has the label queue"),
            ("sum(lockkeeper_a_total)", "is a counter"),
            ('sum(lockkeeper_a_total{result="x"})', "is a counter"),
        ):
            problems = dashboards.problems(query, metrics)
            self.assertTrue(problems and part in problems[0], f"{query}: {problems}")


class Alerts(unittest.TestCase):
    def test_metrics_and_labels_exist(self) -> None:
        metrics = dashboards.read_metrics(dashboards.METRICS)
        self.assertGreater(len(alerts()), 20)
        for name, (expression, text) in alerts().items():
            self.assertTrue(dashboards.names(expression, metrics), name)
            self.assertEqual(dashboards.problems(expression, metrics), [], name)
            # A label in a text must be one of the alert: it is in by (…), or nothing is summed up.
            for label in re.findall(r"\$labels\.(\w+)", text):
                grouped = re.findall(r"by \(([^)]*)\)", expression)
                self.assertTrue(all(label in group for group in grouped), f"{name}: {label}")

    def test_values_of_labels_are_documented(self) -> None:
        page = dashboards.METRICS.read_text(encoding="utf-8")
        for name, (expression, _) in alerts().items():
            for values in re.findall(r'=~?"([^"]+)"', expression):
                for value in values.split("|"):
                    self.assertIn(f"`{value}`", page, name)

    def test_each_alert_has_texts_and_a_severity(self) -> None:
        for name, (_, text) in alerts().items():
            self.assertRegex(text, r"labels: \{severity: (critical|warning|info)\}", name)
            self.assertIn("      summary: ", text, name)
            self.assertIn("      description: ", text, name)

    def test_each_alert_has_a_runbook(self) -> None:
        sections = re.split(r"^## (\w+)\n", RUNBOOKS, flags=re.MULTILINE)
        self.assertEqual(sections[1::2], list(alerts()), "the sections are in the order of the alerts")
        for name, text in zip(sections[1::2], sections[2::2]):
            for part in ("**Meaning.**", "**Likely causes.**", "```sh\n", "**Repair.**"):
                self.assertIn(part, text, name)

    def test_each_alert_is_fired(self) -> None:
        fired = set(re.findall(r'ALERTS\{alertname="(\w+)",alertstate="firing"[^}]*\}\', value: 1', TEST))
        self.assertEqual(fired, set(alerts()))


if __name__ == "__main__":
    unittest.main()
