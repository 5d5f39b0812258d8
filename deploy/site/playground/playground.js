// The page of the playground: texts in, findings out.

// A check takes milliseconds. One that takes longer than this is stopped.
const CHECK_MAX_MS = 10_000;
// The first check also loads the module.
const LOAD_MAX_MS = 120_000;
// The pause after the last change of a text.
const IDLE_MS = 400;
// More findings are counted, not listed.
const FINDINGS_MAX = 200;

const QUEUE = `apiVersion: lockkeeper.dev/v1alpha1
kind: ClusterQueue
metadata:
  name: vision
spec:
  cohortName: research
  namespaceSelector: {}
  preemption:
    borrowWithinCohort:
      policy: LowerPriority
  resourceGroups:
    - coveredResources: ["nvidia.com/gpu"]
      flavors:
        - name: a100
          resources:
            - name: nvidia.com/gpu
              nominalQuota: 8
              borowingLimit: 4
`;

const DEFINITION = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: runs.training.example.com
spec:
  group: training.example.com
  scope: Namespaced
  names: {kind: Run, plural: runs, singular: run, listKind: RunList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [image, replicas]
              x-kubernetes-validations:
                - rule: self.image == oldSelf.image
                  message: the image of a run does not change
              properties:
                image: {type: string, maxLength: 200}
                replicas: {type: integer, minimum: 1}
---
apiVersion: training.example.com/v1
kind: Run
metadata:
  name: first
  namespace: team
spec:
  image: registry.example.com/train:2
  replicas: 0
`;

const EXAMPLES = [
  { title: "a queue with two mistakes", text: QUEUE, old: "" },
  {
    title: "a definition, and an update",
    text: DEFINITION,
    old: DEFINITION.replace("train:2", "train:1").replace("replicas: 0", "replicas: 1"),
  },
  { title: "empty", text: "", old: "" },
];

const element = (id) => document.getElementById(`playground-${id}`);
const page = {
  root: element("root"),
  status: element("status"),
  form: element("form"),
  example: element("example"),
  version: element("version"),
  strict: element("strict"),
  closed: element("closed"),
  text: element("new"),
  old: element("old"),
  summary: element("summary"),
  findings: element("findings"),
};

/** Runs one check at a time. A newer request replaces one that waits. */
class Checker {
  #worker = null;
  #running = null;
  #next = null;
  #timer = 0;
  #isLoaded = false;
  #id = 0;

  constructor(show) {
    this.show = show;
  }

  check(request) {
    this.#next = request;
    if (this.#running === null) this.#start();
  }

  #start() {
    if (this.#next === null) return;
    this.#worker ??= this.#newWorker();
    this.#running = ++this.#id;
    const limit = this.#isLoaded ? CHECK_MAX_MS : LOAD_MAX_MS;
    this.#timer = setTimeout(() => this.#stop(`The check was stopped after ${limit / 1000} seconds.`), limit);
    this.#worker.postMessage({ id: this.#running, request: JSON.stringify(this.#next) });
    this.#next = null;
  }

  #newWorker() {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }) => {
      if (data.versions !== undefined) offerVersions(data.versions);
      if (data.id !== this.#running) return;
      clearTimeout(this.#timer);
      this.#running = null;
      this.#isLoaded ||= data.error === undefined;
      this.show(data);
      this.#start();
    });
    worker.addEventListener("error", () => this.#stop("The module of the playground could not be loaded."));
    return worker;
  }

  /** Ends a check that does not answer. The next one gets a new thread. */
  #stop(error) {
    clearTimeout(this.#timer);
    this.#worker?.terminate();
    this.#worker = null;
    this.#isLoaded = false;
    this.#running = null;
    this.show({ error });
    this.#start();
  }
}

function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function summary({ findings, summary: { errors, warnings, objects, skipped } }) {
  const parts = [`${plural(objects, "object")}: ${plural(errors, "error")}, ${plural(warnings, "warning")}`];
  if (skipped > 0) parts.push(`${plural(skipped, "object")} of unknown kinds not checked`);
  if (findings.length > FINDINGS_MAX) parts.push(`the first ${FINDINGS_MAX} findings are listed`);
  return `${parts.join("; ")}.`;
}

/** Fills the choice of versions, the newest first. The first request has none, which is the newest. */
function offerVersions(versions) {
  if (page.version.options.length === 0) page.version.append(...versions.map((version) => new Option(version, version)));
}

/** Selects a line of the manifests and scrolls to it. */
function select(line) {
  const lines = page.text.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, it) => sum + it.length + 1, 0);
  page.text.focus();
  page.text.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  const height = page.text.scrollHeight / Math.max(lines.length, 1);
  page.text.scrollTop = Math.max(0, (line - 4) * height);
}

/** The item of a finding. All texts are set as text: they contain what the user has typed. */
function item(finding) {
  const at = document.createElement("button");
  at.type = "button";
  at.textContent = `line ${finding.line}, column ${finding.column}`;
  at.addEventListener("click", () => select(finding.line));
  const severity = document.createElement("strong");
  severity.textContent = finding.severity;
  const rule = document.createElement("code");
  rule.textContent = finding.rule;
  const message = document.createElement("span");
  message.textContent = finding.message;
  const entry = document.createElement("li");
  entry.className = finding.severity;
  entry.append(severity, " ", rule, " ", at, document.createElement("br"), message);
  return entry;
}

function show({ report, error }) {
  page.root.removeAttribute("aria-busy");
  if (error !== undefined) {
    page.summary.textContent = error;
    page.findings.replaceChildren();
    return;
  }
  const parsed = JSON.parse(report);
  page.summary.textContent = summary(parsed);
  page.findings.replaceChildren(...parsed.findings.slice(0, FINDINGS_MAX).map(item));
}

const checker = new Checker(show);

function run() {
  page.root.setAttribute("aria-busy", "true");
  const file = (text) => (text.trim() === "" ? [] : [{ name: "manifests.yaml", text }]);
  checker.check({
    files: file(page.text.value),
    oldFiles: file(page.old.value),
    kubernetesVersion: page.version.value,
    strict: page.strict.checked,
    closed: page.closed.checked,
  });
}

function load({ text, old }) {
  page.text.value = text;
  page.old.value = old;
  page.old.closest("details").open = old !== "";
  run();
}

let idle = 0;
function runWhenIdle() {
  clearTimeout(idle);
  idle = setTimeout(run, IDLE_MS);
}

page.example.append(...EXAMPLES.map(({ title }, index) => new Option(title, String(index))));
page.example.addEventListener("change", () => load(EXAMPLES[Number(page.example.value)]));
for (const choice of [page.version, page.strict, page.closed]) choice.addEventListener("change", run);
for (const text of [page.text, page.old]) text.addEventListener("input", runWhenIdle);
page.form.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
// The keys of the page, such as the arrows to the next chapter, are typed here.
page.root.addEventListener("keydown", (event) => event.stopPropagation());
page.root.hidden = false;
page.status.hidden = true;
load(EXAMPLES[0]);
