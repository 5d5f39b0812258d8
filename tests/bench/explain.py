"""Writes a dump of 50,000 workloads and measures commands on it. See the script `explain`."""

import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import time

QUEUES, COHORTS, WORKLOADS, ADMITTED = 200, 10, 50_000, 4_000
API_VERSION = "kueue.x-k8s.io/v1beta2"
CREATED = "2026-11-20T{:02}:{:02}:{:02}Z"


def queue_object(kind, name, spec, namespace=None):
    metadata = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def cluster_queue(at):
    quotas = {"cpu": "1000", "memory": "4Ti", "nvidia.com/gpu": "100"}
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    group = {"coveredResources": list(quotas), "flavors": [{"name": "default", "resources": resources}]}
    return {
        "cohortName": f"cohort-{at % COHORTS}",
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "resourceGroups": [group],
    }


def workload(at, numbers):
    container = {
        "name": "worker",
        "image": "registry.example.com/team/train:v1",
        "command": ["python", "train.py", "--epochs", "10"],
        "env": [{"name": f"VARIABLE_{number}", "value": "x" * 20} for number in range(8)],
        "resources": {
            "requests": {"cpu": str(numbers.choice([1, 2, 4])), "memory": "8Gi", "nvidia.com/gpu": "1"}
        },
    }
    template = {
        "metadata": {"labels": {"app": f"train-{at}"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec = {
        "active": True,
        "priority": numbers.choice([0, 0, 10, 100]),
        "queueName": "main",
        "podSets": [{"name": "main", "count": 4, "template": template}],
    }
    found = queue_object("Workload", f"job-train-{at}", spec, f"team-{at % QUEUES}")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"train-{at}", "uid": f"job-{at}", "controller": True}
    created = CREATED.format(at // 3600 % 24, at // 60 % 60, at % 60)
    found["metadata"].update(uid=f"uid-{at}", creationTimestamp=created, ownerReferences=[owner])
    found["status"] = status(at)
    return found


def status(at):
    is_admitted = at < ADMITTED
    condition = {
        "type": "QuotaReserved",
        "status": str(is_admitted),
        "reason": "QuotaReserved" if is_admitted else "Pending",
        "message": "couldn't assign flavors to pod set main: insufficient unused quota",
        "lastTransitionTime": "2026-11-20T00:00:00Z",
    }
    if not is_admitted:
        return {"conditions": [condition]}
    usage = {"cpu": "16", "memory": "32Gi", "nvidia.com/gpu": "4"}
    assignment = {
        "name": "main",
        "count": 4,
        "flavors": dict.fromkeys(usage, "default"),
        "resourceUsage": usage,
    }
    admission = {"clusterQueue": f"queue-{at % QUEUES}", "podSetAssignments": [assignment]}
    return {"admission": admission, "conditions": [condition]}


def write_dump(path):
    numbers = random.Random(1)
    items = [queue_object("ResourceFlavor", "default", {})]
    items += [queue_object("Cohort", f"cohort-{at}", {"parentName": "all"}) for at in range(COHORTS)]
    for at in range(QUEUES):
        items.append(queue_object("ClusterQueue", f"queue-{at}", cluster_queue(at)))
        items.append(queue_object("LocalQueue", "main", {"clusterQueue": f"queue-{at}"}, f"team-{at}"))
    items += [workload(at, numbers) for at in range(WORKLOADS)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": items}, file)


def measure(command):
    """Returns the seconds and the megabytes of a command."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command} failed")
    return time.monotonic() - started, usage.ru_maxrss // 1024


def main():
    dump, binary, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    # In a process of its own: the maximum memory of a child includes that of its parent at the fork.
    writer = multiprocessing.get_context("spawn").Process(target=write_dump, args=(dump,))
    writer.start()
    writer.join()
    decode = [sys.executable, "-c", f"import json; json.load(open({dump!r}))"]
    explain = [binary, "explain", "--dump", dump]
    commands = {
        "pending": [*explain, "job/train-30000"],
        "running": [*explain, "job/train-0"],
        "queue": [binary, "queue", "--dump", dump, "--output", "name"],
        "python": decode,
    }
    measured = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            measured[name].append(measure(command))
    print(f"{os.path.getsize(dump) // 1_000_000} MB of JSON, {WORKLOADS} workloads")
    print(f"{'command':<8} {'seconds':>8} {'MB':>5} {'MB most':>8} {'against Python':>15}")
    of_python = min(seconds for seconds, _ in measured["python"])
    for name, results in measured.items():
        seconds = min(seconds for seconds, _ in results)
        memory = [megabytes for _, megabytes in results]
        middle, most = statistics.median_low(memory), max(memory)
        print(f"{name:<8} {seconds:8.2f} {middle:5} {most:8} {seconds / of_python:15.2f}")


if __name__ == "__main__":
    main()
