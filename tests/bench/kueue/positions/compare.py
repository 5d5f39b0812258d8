"""Compares positions of pending workloads on random dumps. See the script `run`."""

import json
import random
import subprocess
import sys

API_VERSION = "kueue.x-k8s.io/v1beta2"
QUEUES, WORKLOADS_MAX = 200, 24


def timestamp(numbers):
    # Few different times: many are equal.
    return f"2026-11-20T00:{numbers.randrange(3):02}:{numbers.randrange(4):02}Z"


def condition(kind, reason, time, status="True"):
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": time}


def admission(queue):
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}
    return {"clusterQueue": queue, "podSetAssignments": [assignment]}


def status(numbers, queue):
    """The status of a workload in one of the states of its life."""
    state = numbers.choice(["new", "new", "pending", "pending", "evicted", "requeued", "admitted", "finished"])
    time = timestamp(numbers)
    if state == "pending":
        return {"conditions": [condition("QuotaReserved", "Pending", time, "False")]}
    if state in ("evicted", "requeued"):
        reason = numbers.choice(["Preempted", "PodsReadyTimeout", "AdmissionCheck", "ClusterQueueStopped"])
        conditions = [
            condition("QuotaReserved", "Pending", time, "False"),
            condition("Evicted", reason, time),
        ]
        if reason == "Preempted":
            conditions.append(condition("Preempted", "InClusterQueue", time))
        if state == "requeued":
            conditions.append(condition("Requeued", reason, timestamp(numbers)))
        return {"conditions": conditions}
    if state in ("admitted", "finished"):
        conditions = [condition("QuotaReserved", "QuotaReserved", time), condition("Admitted", "Admitted", time)]
        if state == "finished":
            conditions.append(condition("Finished", "Succeeded", time))
        return {"admission": admission(queue), "conditions": conditions}
    return {}


def workload(numbers, number, queue, namespace):
    name = f"w-{number}-{numbers.randrange(1000)}"
    requests = {"cpu": str(numbers.randint(1, 3))}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]}}
    spec = {
        "queueName": f"{queue}-{numbers.randrange(2)}",
        "podSets": [{"name": "main", "count": 1, "template": template}],
        "priority": numbers.choice([0, 0, 0, 1, 10, -5]),
    }
    if numbers.random() < 0.1:
        spec["active"] = False
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"{numbers.getrandbits(32):08x}-0000-0000-0000-{number:012}",
        "creationTimestamp": timestamp(numbers),
    }
    state = status(numbers, queue)
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": spec, "status": state}


def dump(seed):
    numbers = random.Random(seed)
    items = [{"apiVersion": API_VERSION, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}}]
    number = 0
    for at in range(QUEUES):
        queue, namespace = f"queue-{at}", f"team-{at % 7}"
        quota = {"name": "cpu", "nominalQuota": str(numbers.randint(0, 9))}
        flavors = [{"name": "default", "resources": [quota]}]
        spec = {
            "namespaceSelector": {},
            "queueingStrategy": numbers.choice(["StrictFIFO", "BestEffortFIFO"]),
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
        }
        items.append({"apiVersion": API_VERSION, "kind": "ClusterQueue", "metadata": {"name": queue}, "spec": spec})
        for local in range(2):
            metadata = {"name": f"{queue}-{local}", "namespace": namespace}
            spec = {"clusterQueue": queue}
            items.append({"apiVersion": API_VERSION, "kind": "LocalQueue", "metadata": metadata, "spec": spec})
        for _ in range(numbers.randint(0, WORKLOADS_MAX)):
            items.append(workload(numbers, number, queue, namespace))
            number += 1
    numbers.shuffle(items)
    return {"apiVersion": "v1", "kind": "List", "items": items}


def positions(rows):
    """The names by ClusterQueue, in the order of the positions."""
    queues = {}
    # A workload that no cycle considers has no position.
    listed = [row for row in rows if row.get("position") is not None]
    for row in sorted(listed, key=lambda row: row["position"]):
        queues.setdefault(row["clusterQueue"], []).append(f"{row['namespace']}/{row['name']}")
    return queues


def main():
    folder, binary, dumps, first = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    compared = different = 0
    for seed in range(first, first + dumps):
        path = f"{folder}/dump.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dump(seed), file)
        kueue = json.loads(subprocess.check_output([f"{folder}/positions", path]))
        rows = json.loads(subprocess.check_output([binary, "queue", "--dump", path, "--output", "json"]))
        own = positions(rows)
        for queue, expected in kueue.items():
            compared += len(expected)
            if own.get(queue, []) != expected:
                different += 1
                print(f"seed {seed}, ClusterQueue {queue}: Kueue {expected}, lockkeeper {own.get(queue, [])}")
    print(f"{compared} positions of {dumps} dumps compared, {different} ClusterQueues differ")
    sys.exit(0 if compared and not different else 1)


if __name__ == "__main__":
    main()
