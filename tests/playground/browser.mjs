// Tests the playground of the site in a browser: node browser.mjs FOLDER. The folder has the site. Screenshots are written into it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";
import { FLAGS, checkAccessibility } from "./accessibility.mjs";

const folder = resolve(process.argv[2]);

/** Serves the site on a free port, as any web server does. */
async function serve() {
  const words = ["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", join(folder, "site/book/html"), "0"];
  const server = spawn("python3", words, { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = await once(server.stdout, "data");
  const port = /port (\d+)/.exec(String(line))[1];
  return { server, origin: `http://127.0.0.1:${port}` };
}

const findings = (page) => page.locator("#playground-findings li").allTextContents();
const summary = (page, text) => page.locator("#playground-summary", { hasText: text }).waitFor();

async function type(page, id, text) {
  await page.locator(`#playground-${id}`).fill(text);
}

async function checkFindings(page) {
  // Two mistakes: a misspelt field, and a policy without the one that it needs.
  await summary(page, "1 object: ");
  const first = (await findings(page)).join("\n");
  assert.match(first, /borowingLimit/);
  assert.match(first, /reclaimWithinCohort/);

  // A finding leads to its line.
  const item = page.locator("#playground-findings li", { hasText: "borowingLimit" }).first();
  await item.getByRole("button").click();
  const selected = await page.locator("#playground-new").evaluate((it) => it.value.slice(it.selectionStart, it.selectionEnd));
  assert.match(selected, /borowingLimit: 4/);

  // An update is compared with the manifests before it.
  await page.getByLabel("Example").selectOption({ label: "a definition, and an update" });
  await summary(page, "2 objects: ");
  const update = (await findings(page)).join("\n");
  assert.match(update, /the image of a run does not change/);
  assert.match(update, /spec\.replicas/);
}

async function checkInputs(page) {
  // A text is checked while it is typed. Its contents are never taken as HTML.
  const name = '<img src=x onerror="alert(1)">';
  await type(page, "old", "");
  await type(page, "new", `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: '${name}'\n`);
  await page.locator("#playground-findings li", { hasText: "<img src=x" }).first().waitFor();
  assert.equal(await page.locator("#playground-findings img").count(), 0);

  for (const text of ["{", "a: [1", "kind: [", "\u0000", "- ".repeat(5_000), "a: &a [*a]\n"]) {
    await type(page, "new", text);
    await page.getByRole("button", { name: "Check" }).click();
    await page.locator("#playground-root:not([aria-busy])").waitFor();
    assert.notEqual(await page.locator("#playground-summary").textContent(), "", text);
  }
  const versions = await page.locator("#playground-version option").allTextContents();
  assert.ok(versions.length > 2, String(versions));
  for (const version of versions) {
    await page.getByLabel("Kubernetes").selectOption(version);
    await type(page, "new", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a, imag: b}]}\n");
    await page.locator("#playground-findings li", { hasText: "imag" }).first().waitFor();
  }

  // Strict: a kind without a definition.
  await type(page, "new", "apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: a}\n");
  await summary(page, "1 object of unknown kinds not checked");
  await page.getByLabel("unknown kinds are errors").check();
  await summary(page, "1 error");
  await type(page, "new", "");
  await summary(page, "0 objects: 0 errors");
}

const { server, origin } = await serve();
const profile = mkdtempSync(join(tmpdir(), "playground-"));
let failed = false;
try {
  for (const [theme, width] of [["light", 1_280], ["dark", 420]]) {
    const errors = [];
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: process.env.CHROMIUM, args: FLAGS, headless: true, colorScheme: theme, viewport: { width, height: 900 },
    });
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("request", (request) => { if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith("data:")) errors.push(`requests ${request.url()}`); });
    page.on("dialog", (dialog) => { errors.push(`dialog ${dialog.message()}`); return dialog.dismiss(); });
    await page.goto(`${origin}/docs/playground.html`);
    await checkFindings(page);
    await page.screenshot({ path: join(folder, `playground-${theme}.png`), fullPage: true });
    // The rest of the page is mdBook's.
    await checkAccessibility(page, `playground, ${theme}`, { selector: "#playground-root", rulesMin: 12 });
    await checkInputs(page);
    await context.close();
    assert.deepEqual(errors, []);
  }
  console.log("playground: findings, updates, hostile texts and accessibility checked in two themes");
} catch (error) {
  failed = true;
  console.error(error);
} finally {
  server.kill();
  rmSync(profile, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
