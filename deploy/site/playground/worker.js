// Checks manifests outside the page's thread, so that a slow check neither blocks the page nor lasts forever.

import init, { check, kubernetesVersions } from "./lockkeeper_playground.js";

const ready = init().then(() => postMessage({ versions: kubernetesVersions() }));

addEventListener("message", async ({ data: { id, request } }) => {
  try {
    await ready;
    postMessage({ id, report: check(request) });
  } catch (error) {
    postMessage({ id, error: String(error?.message ?? error) });
  }
});
