// Compares the findings of the linter in WebAssembly with those of the command: compare.mjs MODULE COMMAND.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [modulePath, command] = process.argv.slice(2);
const { check, kubernetesVersions } = createRequire(import.meta.url)(resolve(modulePath));

const manifests = (folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .sort()
    .map((name) => join(folder, name));
const source = (path) => ({ name: path, text: readFileSync(path, "utf8") });

// The files of a case, the files before a change, the fields of the request, and the flags of the command.
const cases = [
  { files: manifests("examples/good"), request: { strict: true }, flags: ["--strict"] },
  { files: manifests("examples/good"), request: { closed: true }, flags: ["--closed"] },
  ...manifests("examples/bad").map((path) => ({ files: [path] })),
  { files: manifests("examples/bad"), request: { closed: true }, flags: ["--closed"] },
  { files: manifests("examples/bad"), request: { ignore: ["CQ"] }, flags: ["--ignore", "CQ"] },
  { files: manifests("tests/playground/manifests") },
  {
    files: ["tests/playground/manifests/widget.yaml"],
    request: { kubernetesVersion: "1.33", select: ["SC"] },
    flags: ["--kubernetes-version", "1.33", "--select", "SC"],
  },
  {
    files: manifests("tests/playground/manifests"),
    old: manifests("tests/playground/old"),
    flags: ["--old", "tests/playground/old"],
  },
];

const failures = [];
let findings = 0;
for (const { files, old = [], request = {}, flags = [] } of cases) {
  const report = check(
    JSON.stringify({ files: files.map(source), oldFiles: old.map(source), ...request }),
  );
  const expected = spawnSync(command, ["check", "--output", "json", ...flags, ...files], {
    encoding: "utf8",
  });
  findings += JSON.parse(report).findings.length;
  if (report !== expected.stdout) {
    const folder = mkdtempSync(join(tmpdir(), "playground-"));
    writeFileSync(join(folder, "module.json"), report);
    writeFileSync(join(folder, "command.json"), expected.stdout);
    const diff = spawnSync("diff", ["-u", "command.json", "module.json"], { cwd: folder, encoding: "utf8" });
    rmSync(folder, { recursive: true });
    failures.push(`${files[0]}: different findings\n${diff.stdout}${expected.stderr}`);
  }
}

// Wrong requests throw errors, and the module answers the next request.
for (const [request, message] of [
  ["{", "the request is not valid"],
  ['{"file": []}', "unknown field `file`"],
  ['{"kubernetesVersion": "1.2"}', "unsupported version"],
  ['{"select": ["XX999"]}', "XX999"],
]) {
  try {
    check(request);
    failures.push(`${request}: accepted`);
  } catch (error) {
    if (!String(error).includes(message)) failures.push(`${request}: ${error}`);
  }
}
check("{}");
for (const kubernetesVersion of kubernetesVersions()) check(JSON.stringify({ kubernetesVersion }));
if (kubernetesVersions()[0] !== kubernetesVersions().toSorted((a, b) => b.localeCompare(a, "en", { numeric: true }))[0]) {
  failures.push("the newest version of Kubernetes is not the first");
}

for (const failure of failures) console.error(failure);
if (findings < 50) failures.push(`only ${findings} findings`);
console.log(`${cases.length} cases with ${findings} findings, ${failures.length} failed`);
process.exit(failures.length > 0 ? 1 : 0);
