#!/usr/bin/env python3
"""Writes the Grafana dashboards of the chart, with Python's standard library only.

  dashboards.py write          writes charts/lockkeeper/monitoring/dashboards/*.json
  dashboards.py check          compares the files, and each query with the metrics of docs/metrics.md
  dashboards.py rules          prints all queries as recording rules, for `promtool check rules`

docs/metrics.md is compared with the metrics of the code by tests, so it is the list of metrics here. The description of a
panel is the meaning of its metrics there. Exit codes: 0 done, 1 findings, 2 wrong usage or a file that cannot be read.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "charts/lockkeeper/monitoring/dashboards"
METRICS = ROOT / "docs/metrics.md"
# Suffixes of the series of a histogram.
PARTS = ("_bucket", "_sum", "_count")
# Labels that Prometheus adds to each series, or computes.
ADDED = {"instance", "job", "pod", "namespace", "le"}
WIDTH, HEIGHT = 12, 8
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Unreadable(Exception):
    """A file that is missing or has another form."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """A row of docs/metrics.md."""

    kind: str
    labels: frozenset[str]
    meaning: str


@dataclasses.dataclass(frozen=True)
class Panel:
    """A panel: a title, a unit of Grafana, and queries with the legend of their series."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"


@dataclasses.dataclass(frozen=True)
class Dashboard:
    """A dashboard. With `by_queue` it has a variable for ClusterQueues."""

    uid: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    by_queue: bool = False


def rate(metric: str, *by: str, where: str = "") -> str:
    grouped = f" by ({', '.join(by)})" if by else ""
    return f"sum{grouped} (rate({metric}{where}[$__rate_interval]))"


def quantiles(metric: str, *by: str) -> tuple[tuple[str, str], ...]:
    legend = " ".join(f"{{{{{label}}}}}" for label in by)
    return tuple(
        (f"histogram_quantile({share}, {rate(metric + '_bucket', 'le', *by)})", f"{legend} p{share * 100:.0f}".strip())
        for share in (0.5, 0.99)
    )


W, C, O = "lockkeeper_webhook", "lockkeeper_controller", "lockkeeper_observed"
QUEUE = '{cluster_queue=~"$cluster_queue"}'

WEBHOOK = Dashboard(
    "lockkeeper-webhook", "lockkeeper / Webhook", "Admission reviews, rules, certificates and stores of the webhook.",
    (
        Panel("Replicas by version", "none", ((f"count by (version) ({W}_build_info)", "{{version}}"),), "stat"),
        Panel("Certificate: time left", "s", ((f"min({W}_certificate_not_after_seconds) - time()", "serving certificate"),), "stat"),
        Panel("Reviews by verdict", "reqps", ((rate(f"{W}_requests_total", "verdict"), "{{verdict}}"),)),
        Panel("Reviews by kind", "reqps", ((rate(f"{W}_requests_total", "kind", "operation"), "{{kind}} {{operation}}"),)),
        Panel("Time of a request", "s", quantiles(f"{W}_request_duration_seconds", "path")),
        Panel("Requests in flight", "none", ((f"sum by (pod) ({W}_requests_in_flight)", "{{pod}}"),)),
        Panel("Rejected under load, and callers without a valid certificate or token", "reqps", (
            (rate(f"{W}_requests_shed_total"), "429"), (rate(f"{W}_clients_rejected_total"), "client rejected"),
            (rate(f"{W}_rejected_tokens_total"), "token rejected"),
        )),
        Panel("Findings of rules", "reqps", (
            (f"topk(10, {rate(f'{W}_rule_hits_total', 'rule', 'action')})", "{{rule}} {{action}}"),
            (f"topk(10, {rate(f'{W}_user_rule_hits_total', 'rule', 'action')})", "{{rule}} {{action}} (own rule)"),
        )),
        Panel("Exceptions in use", "reqps", ((rate(f"{W}_exceptions_used_total", "exception"), "{{exception}}"),)),
        Panel("Size of bodies", "bytes", quantiles(f"{W}_body_bytes")),
        Panel("Objects in stores", "none", ((f"max by (store) ({W}_store_objects)", "{{store}}"),)),
        Panel("Stores: not synced", "none", ((f"sum by (pod) (1 - {W}_store_synced)", "{{pod}}"),)),
        Panel("Watches: time since the last response", "s", ((f"max by (store) ({W}_watch_age_seconds)", "{{store}}"),)),
        Panel("Live lookups", "reqps", ((rate(f"{W}_live_lookups_total", "result"), "{{result}}"),)),
        Panel("Reloads", "none", (
            (f"sum by (result) (increase({W}_config_reloads_total[$__rate_interval]))", "configuration {{result}}"),
            (f"sum by (result) (increase({W}_certificate_reloads_total[$__rate_interval]))", "certificate {{result}}"),
        )),
        Panel("Conversion reviews", "reqps", ((rate(f"{W}_conversions_total", "result"), "{{result}}"),)),
    ),
)

CONTROLLER = Dashboard(
    "lockkeeper-controller", "lockkeeper / Controller", "Leadership, cycles, writes and watches of the controller.",
    (
        Panel("Leaders", "none", ((f"sum({C}_leading)", "leaders"),), "stat"),
        Panel("Stuck evictions", "none", ((f"max({C}_stuck_evictions)", "workloads"),), "stat"),
        Panel("Cycles and admissions", "ops", (
            (rate(f"{C}_cycles_total"), "cycles"), (rate(f"{C}_admitted_total"), "admissions"),
            (rate(f"{C}_backfilled_total"), "of these by backfill"),
        )),
        Panel("Time of a decision", "s", quantiles(f"{C}_decide_seconds")),
        Panel("Decisions", "ops", ((rate(f"{C}_decisions_total", "decision"), "{{decision}}"),)),
        Panel("Writes by purpose", "ops", ((rate(f"{C}_writes_total", "what"), "{{what}}"),)),
        Panel("Writes without success", "ops", (
            (rate(f"{C}_writes_total", "result", where='{result!~"done|dry_run"}'), "{{result}}"),
        )),
        Panel("Time of a write", "s", quantiles(f"{C}_write_seconds")),
        Panel("Writes in flight", "none", ((f"max({C}_writes_under_way)", "writes"),)),
        Panel("Time until the watch shows a write", "s", quantiles(f"{C}_watch_lag_seconds")),
        Panel("Watches: time since the last response", "s", ((f"max by (kind) ({C}_watch_age_seconds)", "{{kind}}"),)),
        Panel("Repeated preemption", "none", ((f"max by (step) ({C}_preemption_repeats)", "{{step}}"),)),
        Panel("Dropped events, and gaps of the decision log", "none", (
            (f"sum(increase({C}_events_dropped_total[$__rate_interval]))", "events dropped"),
            (f"sum(increase({C}_decision_log_gaps_total[$__rate_interval]))", "gaps"),
        )),
        Panel("Decision log", "Bps", ((rate(f"{C}_decision_log_bytes_total"), "written"),)),
        Panel("Observe mode: decisions of Kueue", "ops", (
            (rate(f"{O}_decisions_total", "decision", "result"), "{{decision}} {{result}}"),
        )),
        Panel("Observe mode: not compared", "none", (
            (f"max({O}_waiting_decisions)", "waiting decisions"),
            (f"sum(increase({O}_unreadable_objects_total[$__rate_interval]))", "unreadable objects"),
        )),
        Panel("Observe mode: time since the last response of a watch", "s", (
            (f"max by (kind) ({O}_watch_age_seconds)", "{{kind}}"),
        )),
    ),
)

BATCH = Dashboard(
    "lockkeeper-batch", "lockkeeper / Queues", "Quota, waits and preemption by ClusterQueue, for those who manage queues.",
    (
        Panel("Pending workloads", "none", ((f"max by (cluster_queue) ({C}_pending_workloads{QUEUE})", "{{cluster_queue}}"),)),
        Panel("Workloads with quota", "none", (
            (f"max by (cluster_queue) ({C}_reserving_workloads{QUEUE})", "{{cluster_queue}}"),
        )),
        Panel("Use of nominal quota; above 100 % the queue borrows", "percentunit", ((
            f"max by (cluster_queue, flavor, resource) ({C}_resource_usage{QUEUE}) / "
            f"(max by (cluster_queue, flavor, resource) ({C}_resource_nominal_quota{QUEUE}) > 0)",
            "{{cluster_queue}} {{resource}} {{flavor}}",
        ),)),
        Panel("Use of quota", "none", (
            (f"max by (cluster_queue, flavor, resource) ({C}_resource_usage{QUEUE})", "{{cluster_queue}} {{resource}} {{flavor}}"),
        )),
        Panel("Why workloads wait", "none", (
            (f"max by (cluster_queue, reason) ({C}_unadmitted_workloads{QUEUE})", "{{cluster_queue}} {{reason}}"),
        )),
        Panel("Time to admission", "s", quantiles(f"{C}_time_to_admission_seconds")),
        Panel("Evictions", "ops", (
            (rate(f"{C}_evictions_total", "cluster_queue", "reason", where=QUEUE), "{{cluster_queue}} {{reason}}"),
        )),
        Panel("Workloads evicted for the first time", "ops", (
            (rate(f"{C}_first_evictions_total", "cluster_queue", "reason", where=QUEUE), "{{cluster_queue}} {{reason}}"),
        )),
        Panel("Preempted workloads", "ops", ((rate(f"{C}_victims_total", "reason"), "{{reason}}"),)),
        Panel("Rejected jobs and queues", "reqps", (
            (rate(f"{W}_requests_total", "kind", where='{verdict="denied"}'), "{{kind}}"),
        )),
    ),
    by_queue=True,
)

DASHBOARDS = (WEBHOOK, CONTROLLER, BATCH)


def read_metrics(path: pathlib.Path) -> dict[str, Metric]:
    """The metrics by their names, with the labels of the table."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 6 and re.fullmatch(r"`lockkeeper_\w+`", cells[1]):
            found[cells[1].strip("`")] = Metric(cells[2], frozenset(re.findall(r"`(\w+)`", cells[3])), cells[4])
    if not found:
        raise Unreadable(f"{path} has no table of metrics")
    return found


def names(query: str, metrics: dict[str, Metric]) -> list[str]:
    """The metrics of a query; of an unknown series its own name."""
    found = []
    for name in re.findall(r"\blockkeeper_\w+", query):
        base = next((name.removesuffix(part) for part in PARTS if name.endswith(part)), name)
        is_part = base != name and base in metrics and metrics[base].kind == "histogram"
        found.append(base if is_part else name)
    return found


def problems(query: str, metrics: dict[str, Metric]) -> list[str]:
    """Unknown metrics and labels of a query, and counters without a rate."""
    found = []
    known = ADDED.copy()
    for name in names(query, metrics):
        if name not in metrics:
            found.append(f"there is no metric {name}")
            continue
        known |= metrics[name].labels
    for name, selector in re.findall(r"\b(lockkeeper_\w+)\{([^}]*)\}", query):
        own = metrics[names(name, metrics)[0]].labels if names(name, metrics)[0] in metrics else known
        for label in re.findall(r"(\w+)\s*(?:=|!)", re.sub(r'"[^"]*"', "", selector)):
            if label not in own | ADDED:
                found.append(f"{name} has no label {label}")
    for group in re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", query):
        found += [f"no metric of the query has the label {label}" for label in re.findall(r"\w+", group) if label not in known]
    for name in re.findall(r"\b(lockkeeper_\w+_total)\b(?:\{[^}]*\})?(?!\{|\[|\w)", query):
        found.append(f"{name} is a counter: use rate() or increase()")
    return found


def panel(number: int, one: Panel, metrics: dict[str, Metric]) -> dict:
    used = [name for query, _ in one.queries for name in names(query, metrics)]
    meaning = " ".join(dict.fromkeys(metrics[name].meaning for name in used if name in metrics))
    value = {
        "id": number + 1,
        "type": one.kind,
        "title": one.title,
        "description": meaning,
        "datasource": SOURCE,
        "gridPos": {"h": HEIGHT, "w": WIDTH, "x": number % 2 * WIDTH, "y": number // 2 * HEIGHT},
        "fieldConfig": {"defaults": {"unit": one.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query, "legendFormat": legend, "editorMode": "code", "range": True}
            for index, (query, legend) in enumerate(one.queries)
        ],
    }
    if one.kind == "timeseries":
        value["options"] = {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}}
    else:
        value["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"}
    return value


def document(one: Dashboard, metrics: dict[str, Metric]) -> dict:
    variables: list[dict] = [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
    ]
    if one.by_queue:
        query = f"label_values({C}_pending_workloads, cluster_queue)"
        variables.append({
            "name": "cluster_queue", "label": "ClusterQueue", "type": "query", "datasource": SOURCE, "query": query, "refresh": 2,
            "includeAll": True, "allValue": ".*", "multi": True, "current": {"text": "All", "value": "$__all"},
        })
    return {
        "uid": one.uid,
        "title": one.title,
        "description": one.description,
        "tags": ["lockkeeper"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": variables},
        "annotations": {"list": []},
        "links": [{"type": "dashboards", "title": "lockkeeper", "tags": ["lockkeeper"], "asDropdown": True, "includeVars": True}],
        "panels": [panel(number, one_panel, metrics) for number, one_panel in enumerate(one.panels)],
    }


def files(metrics: dict[str, Metric]) -> dict[pathlib.Path, str]:
    return {
        FOLDER / f"{one.uid}.json": json.dumps(document(one, metrics), indent=2, ensure_ascii=False) + "\n"
        for one in DASHBOARDS
    }


def check(metrics: dict[str, Metric]) -> list[str]:
    findings, shown = [], set()
    for one in DASHBOARDS:
        for one_panel in one.panels:
            for query, _ in one_panel.queries:
                shown |= set(names(query, metrics))
                findings += [f"{one.title}, {one_panel.title}: {problem}" for problem in problems(query, metrics)]
    findings += [f"{name} is on no dashboard" for name in sorted(set(metrics) - shown)]
    expected = files(metrics)
    for path, text in expected.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            findings.append(f"{path.relative_to(ROOT)} is outdated: deploy/monitoring/dashboards.py write")
    for path in FOLDER.glob("*"):
        if path not in expected:
            findings.append(f"{path.relative_to(ROOT)} belongs to no dashboard")
    return findings


def rules() -> str:
    """All queries as recording rules, with values for the variables of Grafana. JSON is YAML."""
    queries = [query for one in DASHBOARDS for one_panel in one.panels for query, _ in one_panel.queries]
    plain = [query.replace("$__rate_interval", "5m").replace("$cluster_queue", ".*") for query in queries]
    listed = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(plain)]
    return json.dumps({"groups": [{"name": "panels", "rules": listed}]}, indent=2) + "\n"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "check", "rules"])
    given = parser.parse_args(words)
    try:
        metrics = read_metrics(METRICS)
        if given.command == "rules":
            print(rules(), end="")
        elif given.command == "write":
            for path, text in files(metrics).items():
                path.write_text(text, encoding="utf-8")
        else:
            findings = check(metrics)
            for finding in findings:
                print(finding)
            return 1 if findings else 0
    except (Unreadable, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
