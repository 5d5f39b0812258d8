// Tests reports in a browser: node browser.mjs FOLDER. The folder has the reports that `run` writes. Screenshots are written
// into it.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { FLAGS, checkAccessibility } from "./accessibility.mjs";

const folder = resolve(process.argv[2]);
/** Opens a report in a light or dark page that fails the test on an error, a violation of the policy, or a request. */
async function open(context, file, errors) {
  const page = await context.newPage();
  page.on("console", (message) => { if (message.type() === "error" || message.type() === "warning") errors.push(`${file}: ${message.text()}`); });
  page.on("pageerror", (error) => errors.push(`${file}: ${error}`));
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) errors.push(`${file}: requests ${request.url()}`); });
  page.on("dialog", (dialog) => { errors.push(`${file}: dialog ${dialog.message()}`); return dialog.dismiss(); });
  await page.goto(pathToFileURL(join(folder, file)).href);
  return page;
}

const names = (page, number = 0) => page.locator(`#workloads-${number} tbody th`).allTextContents();

async function checkTable(page) {
  const table = page.locator("#workloads-0");
  const status = page.locator('[data-pager="0"] [role=status]');
  assert.match(await status.textContent(), /^Workloads 1 to 50 of 500$/);
  const column = (at) => table.locator(`tbody tr td:nth-child(${at})`).allTextContents();

  const preemptions = table.locator("thead th").nth(8);
  await preemptions.locator("button").click();
  await preemptions.locator("button").press("Enter");
  assert.equal(await preemptions.getAttribute("aria-sort"), "descending");
  const counts = (await column(9)).map(Number);
  assert.deepEqual(counts, counts.toSorted((a, b) => b - a));
  assert.ok(counts[0] > 0);
  await table.locator("thead th").nth(0).locator("button").click();
  assert.equal(await preemptions.getAttribute("aria-sort"), "none");
  assert.deepEqual((await names(page)).slice(0, 2), ["job-000", "job-001"]);

  await page.getByRole("button", { name: "Next page" }).click();
  assert.equal((await names(page))[0], "job-050");
  await page.getByLabel("Name contains").fill("JOB-12");
  assert.deepEqual(await names(page), Array.from({ length: 10 }, (_, at) => `job-12${at}`));
  await page.getByLabel("Name contains").fill("");
  await page.getByLabel("ClusterQueue", { exact: true }).selectOption({ label: "vision" });
  assert.deepEqual([...new Set(await column(2))], ["vision"]);
  await page.getByLabel("State", { exact: true }).selectOption("preempted");
  assert.ok((await column(9)).every((it) => Number(it) > 0));
  await page.getByLabel("Name contains").fill("no such workload");
  assert.equal(await status.textContent(), "No workload matches.");
  for (const label of ["ClusterQueue", "State"]) await page.getByLabel(label, { exact: true }).selectOption("");
  await page.getByLabel("Name contains").fill("");
}

async function checkGantt(page) {
  const figure = page.locator("figure.gantt").first();
  const detail = figure.locator(".detail");
  const preempted = page.locator("#workloads-0 thead th").nth(8).locator("button");
  await preempted.click();
  await preempted.click();
  const button = page.locator("#workloads-0 tbody th button").first();
  const name = await button.textContent();
  await button.click();
  assert.ok((await detail.textContent()).startsWith(`${name}: `));
  assert.match(await detail.textContent(), /Preempted by job-/);
  assert.ok(await figure.locator(".selection path.link").count() > 0, "the selected workload has lines to its preemptors");
  await page.keyboard.press("ArrowDown");
  assert.ok(!(await detail.textContent()).startsWith(`${name}: `), "the arrow key selects the next workload");
  await page.keyboard.press("ArrowUp");
  assert.ok((await detail.textContent()).startsWith(`${name}: `));
  const frame = await figure.locator(".selection path.frame").boundingBox();
  await page.mouse.move(frame.x + frame.width / 2, frame.y + frame.height / 2);
  const tooltip = page.locator(".tooltip");
  assert.ok(await tooltip.isVisible());
  assert.ok((await tooltip.textContent()).startsWith(`${name}: `), "the tooltip has the workload under the pointer");
  await page.mouse.move(2, 2);
  assert.ok(!(await tooltip.isVisible()));
}

async function checkPlot(page) {
  const plot = page.locator("figure[data-axis] svg").first();
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  assert.match(await page.locator(".tooltip").textContent(), /^From .*, mean over .*: research [\d.]+; production [\d.]+; nominal quota [\d.]+$/);
  await page.mouse.move(2, 2);
}

/** The longest task in milliseconds while a user scrolls, sorts and filters. Printed, not required: the machine may be busy. */
async function measure(page, action) {
  await page.evaluate(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((it) => it.duration))).observe({ entryTypes: ["longtask"] });
  });
  await action();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return Math.round(Math.max(0, ...await page.evaluate(() => window.tasks)));
}

async function checkLarge(context, errors) {
  const page = await open(context, "large.html", errors);
  const start = await page.evaluate(() => Math.round(performance.getEntriesByType("navigation")[0].domComplete));
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(elements < 20000, `${elements} elements`);
  const rows = page.locator("figure.gantt .rows");
  const longest = await measure(page, async () => {
    await rows.scrollIntoViewIfNeeded();
    await rows.hover();
    for (let at = 0; at < 20; at += 1) await page.mouse.wheel(0, 1500);
    await page.locator("#workloads-0 thead th").nth(4).locator("button").click();
    await page.getByLabel("Name contains").fill("job-99");
  });
  console.log(`large.html: ${elements} elements, loaded after ${start} ms, longest task ${longest} ms`);
  await page.close();
}

async function checkHostile(context, errors) {
  const page = await open(context, "hostile.html", errors);
  assert.equal(await page.evaluate(() => window.hacked), undefined, "a name runs as a script");
  assert.equal(await page.locator("main img").count(), 0);
  assert.ok((await names(page)).some((it) => it.startsWith("</script><script>")));
  await page.locator("#workloads-0 tbody th button").first().click();
  await checkAccessibility(page, "hostile.html");
  await page.close();
}

const profile = mkdtempSync(join(tmpdir(), "report-browser-"));
const errors = [];
try {
  for (const colorScheme of ["light", "dark"]) {
    const context = await chromium.launchPersistentContext(join(profile, colorScheme), {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, colorScheme, viewport: { width: 1280, height: 900 },
    });
    for (const file of ["small.html", "several.html", "aggregated.html"]) {
      const page = await open(context, file, errors);
      await checkAccessibility(page, `${file}, ${colorScheme}`);
      if (file === "small.html") {
        await checkTable(page);
        await checkGantt(page);
        await checkPlot(page);
        await checkAccessibility(page, `${file} after use, ${colorScheme}`);
      }
      await page.screenshot({ path: join(folder, `${file}-${colorScheme}.png`), fullPage: true });
      await page.close();
    }
    if (colorScheme === "light") {
      await checkHostile(context, errors);
      await checkLarge(context, errors);
    }
    await context.close();
  }
  // Without scripts, the page has the first rows and all plots.
  const context = await chromium.launchPersistentContext(join(profile, "plain"), {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, javaScriptEnabled: false, viewport: { width: 400, height: 800 },
  });
  const page = await open(context, "small.html", errors);
  assert.equal((await names(page)).length, 50);
  assert.ok(!(await page.locator(".controls").isVisible()));
  await page.emulateMedia({ media: "print" });
  await page.pdf({ path: join(folder, "small.pdf"), format: "A4" });
  await context.close();
  assert.deepEqual(errors, []);
  console.log("the reports are accessible, and work without errors");
} finally {
  rmSync(profile, { recursive: true, force: true });
}
