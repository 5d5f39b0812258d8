"""Prepares and compares the objects of tests/bench/crds."""

import json
import os
import re
import sys

# Our own definitions of rare features, kinds of Kubernetes, and kinds of which `check` has its own schemas.
EXCLUDED = ("lab.jsonl", "builtin.jsonl", "kueue.jsonl")
# The accepted objects are written this many times for the measurement.
COPIES = 5
# Texts that YAML 1.1 and 1.2 read as texts without quotes, but for these words.
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
WORDS = {"false", "n", "no", "null", "off", "on", "true", "y", "yes"}


def schema_of(node, is_root=False):
    """A schema of a definition as a strict JSON Schema. Unlike that of openapi2jsonschema.py, it has nullable fields, and
    is open where unknown fields are preserved."""
    if isinstance(node, list):
        return [schema_of(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("x-kubernetes-int-or-string"):
        return {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    out = {}
    for key, value in node.items():
        if key == "properties":
            out[key] = {name: schema_of(child) for name, child in value.items()}
        elif key in ("description", "default", "enum", "example"):
            out[key] = value
        elif not key.startswith("x-kubernetes-"):
            out[key] = schema_of(value)
    if out.pop("nullable", False) and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    is_closed = "properties" in out and "additionalProperties" not in out
    if is_closed and not is_root and not node.get("x-kubernetes-preserve-unknown-fields"):
        out["additionalProperties"] = False
    return out


def load(path):
    """A definition, written as JSON or YAML."""
    text = open(path).read()
    try:
        return json.loads(text)
    except ValueError:
        import yaml

        return yaml.safe_load(text)


def scalar(value):
    """A scalar as people write it."""
    is_plain = isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in WORDS
    return value if is_plain else json.dumps(value)


def yaml_lines(value, indent, out):
    """A value as YAML in block style, as people write manifests."""
    pad = " " * indent
    if isinstance(value, dict) and value:
        for key, child in value.items():
            if isinstance(child, (dict, list)) and child:
                out.append(f"{pad}{scalar(key)}:")
                yaml_lines(child, indent + 2, out)
            else:
                out.append(f"{pad}{scalar(key)}: {scalar(child)}")
    elif isinstance(value, list) and value:
        for child in value:
            if isinstance(child, (dict, list)) and child:
                lines = []
                yaml_lines(child, indent + 2, lines)
                lines[0] = f"{pad}- {lines[0].lstrip()}"
                out.extend(lines)
            else:
                out.append(f"{pad}- {scalar(child)}")
    else:
        out.append(f"{pad}{scalar(value)}")


def yaml_text(value):
    lines = []
    yaml_lines(value, 0, lines)
    return "\n".join(lines) + "\n"


def cases(data):
    """The requests that create a whole object of a project's kind."""
    for name in sorted(os.listdir(f"{data}/cases")):
        if name in EXCLUDED:
            continue
        for line in open(f"{data}/cases/{name}"):
            case = json.loads(line)
            is_create = case["operation"] == "CREATE" and not case.get("subresource")
            is_plain = "object" in case and "crdPatch" not in case and "environment" not in case
            if is_create and is_plain and case["fieldValidation"] == "Strict" and isinstance(case["object"], dict):
                yield case


def prepare(data, work):
    for folder in ("all", "accepted", "crds"):
        os.makedirs(f"{work}/{folder}")
    answers = {}
    for case in cases(data):
        text = yaml_text(case["object"])
        name = f"{len(answers):05}"
        is_accepted = case["stage"] == "accepted"
        answers[name] = is_accepted
        open(f"{work}/all/{name}.yaml", "w").write(text)
        for copy in range(COPIES if is_accepted else 0):
            open(f"{work}/accepted/{name}-{copy}.yaml", "w").write(text)
    json.dump(answers, open(f"{work}/answers.json", "w"))
    for project in sorted(os.listdir(f"{data}/crds")):
        if f"{project}.jsonl" in EXCLUDED:
            continue
        for file in sorted(os.listdir(f"{data}/crds/{project}")):
            definition = load(f"{data}/crds/{project}/{file}")
            open(f"{work}/crds/{file}", "w").write(yaml_text(definition))
            spec = definition["spec"]
            folder = f"{work}/schemas/{spec['group']}"
            os.makedirs(folder, exist_ok=True)
            kind = spec["names"]["kind"].lower()
            for version in spec["versions"]:
                schema = schema_of(version["schema"]["openAPIV3Schema"], is_root=True)
                json.dump(schema, open(f"{folder}/{kind}_{version['name']}.json", "w"))


def rejected_by_peer(work):
    """The files that kubeconform rejects; a file that it cannot read counts."""
    resources = json.load(open(f"{work}/peer.json"))["resources"]
    return {name_of(it["filename"]) for it in resources if it["status"] in ("statusInvalid", "statusError")}


def rejected_by_check(work, program):
    findings = json.load(open(f"{work}/{program}.json"))["findings"]
    return {name_of(it["file"]) for it in findings if it["severity"] == "error"}


def rejected_by_kubectl_validate(work):
    statuses = json.load(open(f"{work}/kubectl-validate.json"))
    return {name_of(file) for file, all in statuses.items() if any(it["status"] != "Success" for it in all)}


def name_of(file):
    return os.path.basename(file).removesuffix(".yaml")


def compare(work):
    answers = json.load(open(f"{work}/answers.json"))
    accepted = {name for name, is_accepted in answers.items() if is_accepted}
    rejected = set(answers) - accepted
    print(f"{'program':16} {'accepted':>14} {'rejected':>14}   as the API server")
    programs = [("kubeconform", rejected_by_peer(work))]
    programs += [(name, rejected_by_check(work, name)) for name in ("schemas", "crds")]
    if os.path.exists(f"{work}/kubectl-validate.json"):
        programs.append(("kubectl-validate", rejected_by_kubectl_validate(work)))
    for name, found in programs:
        right = len(accepted - found), len(rejected & found)
        counts = f"{right[0]:>6} of {len(accepted):>4} {right[1]:>6} of {len(rejected):>4}"
        share = 100 * sum(right) / len(answers)
        print(f"{name:16} {counts}   {share:5.1f} %")


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(*sys.argv[2:])
    else:
        compare(*sys.argv[2:])
