// What the tests of pages in a browser share: the flags of Chromium, and a check with axe.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** Runs axe on a part of the page in an isolated world, which the policy of the page does not restrict. */
export async function checkAccessibility(page, file, { selector = "html", rulesMin = 20 } = {}) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  await session.send("Runtime.evaluate", { expression: axe, contextId: executionContextId });
  const expression = `axe.run(${JSON.stringify(selector)}, ` + "{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })" +
    ".then((it) => JSON.stringify([it.passes.length, ...it.violations.map((v) => [v.id, v.help, v.nodes.length, v.nodes[0].html.slice(0, 300), v.nodes[0].failureSummary])]))";
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, contextId: executionContextId, awaitPromise: true });
  assert.equal(exceptionDetails, undefined, `${file}: axe failed`);
  const [passes, ...violations] = JSON.parse(result.value);
  assert.deepEqual(violations, [], `${file}: not accessible`);
  assert.ok(passes > rulesMin, `${file}: axe found only ${passes} rules to check`);
  await session.detach();
}
