// Prints a trace with a number of jobs: node trace.mjs JOBS [GAP_SECONDS [hostile]]. The same arguments give the same trace.
// The gap is the mean time between arrivals. With `hostile`, all names contain markup.
const jobs = Number(process.argv[2] ?? 500);
const isHostile = process.argv[4] === "hostile";
const gapSeconds = Number(process.argv[3] ?? 270);

let state = 12345;
/** A number below a limit, from a linear congruential generator. */
function below(limit) {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}

const HOSTILE = ["</script><script>window.hacked = 1</script>", "<img src=x onerror=\"window.hacked = 1\">", "'\"><svg/onload=window.hacked=1>", "&lt;b&gt;&amp;", "]]><!--"];
const name = (text, at) => (isHostile ? `${HOSTILE[at % HOSTILE.length]}${text}` : text);

const quota = (resource, nominal, more = {}) => ({ resource, nominal, ...more });
const flavor = (flavorName, gpus, more) => ({
  name: name(flavorName, gpus),
  quotas: [quota("cpu", String(gpus * 8)), quota("memory", `${gpus * 64}Gi`), quota("nvidia.com/gpu", gpus, more)],
});
const RESOURCES = ["cpu", "memory", "nvidia.com/gpu"];
const queue = (queueName, at, cohort, flavors, more = {}) => ({
  name: name(queueName, at),
  cohort: name(cohort, at),
  resourceGroups: [{ resources: RESOURCES, flavors }],
  preemption: { withinClusterQueue: "LowerPriority", reclaimWithinCohort: "LowerPriority" },
  ...more,
});
const cohorts = { research: name("research", 0), production: name("production", 1), all: name("company", 2) };
const queues = [
  queue("vision", 0, "research", [flavor("a100", 16), flavor("spot", 24, { borrowingLimit: 16, lendingLimit: 20 })]),
  queue("speech", 0, "research", [flavor("a100", 8), flavor("spot", 16)]),
  queue("training", 1, "production", [flavor("a100", 32)]),
  queue("serving", 1, "production", [flavor("a100", 16, { borrowingLimit: 8 })], { queueingStrategy: "StrictFIFO" }),
];

const list = [];
let arrival = 0;
for (let at = 0; at < jobs; at += 1) {
  // A daily cycle: three times as many arrivals in one half of the day.
  arrival += below(Math.floor(arrival / 43200) % 2 === 0 ? gapSeconds * 4 / 3 : gapSeconds * 4);
  const target = queues[[0, 0, 0, 1, 1, 2, 2, 3][below(8)]];
  const gpus = [1, 1, 1, 2, 2, 4, 8, 8, 16][below(9)];
  list.push({
    name: name(`job-${String(at).padStart(String(jobs - 1).length, "0")}`, at),
    uid: String(at),
    clusterQueue: target.name,
    arrival,
    runSeconds: 120 + below(below(4) === 0 ? 28800 : 3600),
    priority: [0, 0, 0, 100, 100, 1000][below(6)],
    podSets: [{ count: gpus, requests: { cpu: String(gpus * 6), memory: `${gpus * 48}Gi`, "nvidia.com/gpu": gpus } }],
  });
}

console.log(JSON.stringify({
  id: name(`${jobs} jobs`, 1),
  cohorts: [
    { name: cohorts.all },
    { name: cohorts.research, parent: cohorts.all },
    { name: cohorts.production, parent: cohorts.all, quotas: [{ flavor: name("a100", 0), resource: "nvidia.com/gpu", nominal: 4 }] },
  ],
  clusterQueues: queues,
  gracePeriodSeconds: 60,
  jobs: list,
}));
