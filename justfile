# Development commands. `just` lists them.

default:
    @just --list

# Fast checks of CI; no cluster, and no network after the dependencies are downloaded
check: fmt-check lint deny
    cargo test --locked --workspace

# Run all tests, including end-to-end tests
test:
    tests/run

# Run only the end-to-end tests
e2e *words:
    cargo test --locked --package lockkeeper --test e2e -- {{words}}

# Upgrade 1,000 running Jobs from the last release, or from a revision, and back: just upgrade v1.2.3
upgrade *revision:
    tests/upgrade {{revision}}

# Run the end-to-end tests on older versions of Kubernetes: just kubernetes-versions 1.33; without one, on all
kubernetes-versions *versions:
    tests/versions {{versions}}

# Run the drills with more load than in CI; the number is that of one step, and a drill has two to five: just drills 2000
drills requests="2000":
    LOCKKEEPER_DRILL_REQUESTS={{requests}} cargo test --locked --package lockkeeper --test e2e -- drill

# Kill, disconnect and flood the controller: just control-drills 600 10000
control-drills seconds="600" workloads="10000":
    LOCKKEEPER_DRILL_SECONDS={{seconds}} LOCKKEEPER_FLOOD_WORKLOADS={{workloads}} cargo test --locked --package lockkeeper --test e2e -- "control: faults"

# Test reports of simulations in Chromium: errors, accessibility, sorting; screenshots are in target/report
report-browser folder="target/report":
    tests/report/run {{folder}}

fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

lint:
    cargo clippy --locked --workspace --all-targets -- -D warnings
    # All targets do not have the end-to-end tests, which run only by name.
    cargo clippy --locked --workspace --test e2e -- -D warnings
    cargo clippy --locked --workspace --all-targets --features lockkeeper/otel,lockkeeper-webhook/otel,lockkeeper/parquet -- -D warnings

# Check licences, sources, duplicate versions and unused dependencies
deny:
    cargo deny --all-features check bans licenses sources
    cargo machete

# Check the dependencies against the RustSec advisories, which cargo-deny downloads from GitHub: just advisories --disable-fetch
advisories *flags:
    deploy/release/advisories {{flags}}

# Create and register the file and page of a rule: just new-rule workload toleration-without-key
new-rule kind name:
    policies/new-rule {{kind}} {{name}}

# Measure the webhook's latency, compared with a no-op path
bench:
    tests/bench/webhook

# Measure the preemption core, compared with a plain reference
bench-core *parts:
    cargo bench --package lockkeeper-preemption --bench preemption -- {{parts}}

# Measure how many workloads one controller decides, with an API server in memory
bench-scale *sizes:
    cargo bench --package lockkeeper-controller --bench scale -- {{sizes}}

# Count the instructions of a review and compare with the baseline
instructions *flags:
    tests/bench/instructions {{flags}}

# Count the instructions of decisions on nodes and compare with the baseline
instructions-placement *flags:
    tests/bench/placement {{flags}}

# Fuzz every parser, the port and the reconciler, two at a time, for ten minutes each: just fuzz SECONDS [TARGET...]
fuzz seconds="600" *targets:
    tests/fuzz/run {{seconds}} {{targets}}

# Mutants are built in a copy of the repository, so paths outside it must be absolute.
# Mutants that change only the cost are excluded.
decisions := if path_exists(justfile_directory() / "../shared/data") == "true" { justfile_directory() / "../shared/data" } else { "tests/conformance/data" }
mutate := "LOCKKEEPER_SHRINK_STEPS=0 LOCKKEEPER_CONFORMANCE_DIR=" + quote(decisions) + " cargo mutants --output target --package lockkeeper-preemption --file 'preemption/src/victims/*.rs' --file 'preemption/src/quota/*.rs' --exclude-re 'is_dirty -> bool with true' --exclude-re '> with >= in Tree::(add|remove)_usage' --exclude-re 'PartialEq for Head'"

# Find mutants of the victim search and the quota that no test detects; takes an hour or two: just mutants --re fair.rs
[positional-arguments]
mutants *flags:
    @echo "Mutants against the short tests of the core (optimized, a tenth of the time):"
    CARGO_PROFILE_DEV_OPT_LEVEL=1 {{mutate}} --timeout 120 --test-package lockkeeper-preemption "$@" -- --locked --lib --test extensions --test proofs -- --skip loops || case $? in 2 | 3) ;; *) exit 1 ;; esac
    @echo "Remaining mutants against the long tests and Kueue's decisions:"
    LOCKKEEPER_CONFORMANCE_DIR={{quote(decisions)}} cargo test --locked --package lockkeeper-scenario --test conformance
    {{mutate}} --iterate --baseline skip --timeout 300 --test-package lockkeeper-preemption --test-package lockkeeper-scenario "$@" -- --locked --test proofs --test conformance || test $? = 3

# Find mutants of the controller and the certificates that no short test detects; takes a night: just mutants-services --shard 0/8
[positional-arguments]
mutants-services *flags:
    tests/mutants "$@"

# Long versions of the CI checks; takes hours. Its parts are recipes, which .github/workflows/nightly.yaml runs in parallel
nightly: (fuzz "3600") nightly-drills nightly-kubernetes nightly-properties mutants advisories

# The part of nightly with clusters, images and browsers. Each drill sends at least 100,000 requests: 50,000 in each of its steps
nightly-drills: (drills "50000") (control-drills "600") image playground playground-browser report-browser tutorial

# The part of nightly with an older version of Kubernetes, another each night, and an upgrade
nightly-kubernetes:
    tests/versions --of-the-day
    tests/upgrade

# The part of nightly with long versions of tests
nightly-properties:
    LOCKKEEPER_CASES=5000 cargo test --locked --package lockkeeper-crdgen --test agreement
    LOCKKEEPER_DRY_RUNS=400 cargo test --locked --workspace --test e2e -- "schemas and admission policies agree with the rules"
    LOCKKEEPER_RANDOM_SEED="$(date +%y%m%d)0000" LOCKKEEPER_RANDOM_DEFINITIONS=1500 cargo test --locked --workspace --test e2e -- "random definitions"
    LOCKKEEPER_SEEDS=200000 cargo test --locked --package lockkeeper-controller --test simulation
    LOCKKEEPER_STEPS=1000000 LOCKKEEPER_SMALL_CLUSTERS=1 LOCKKEEPER_LOOP_CLUSTERS=200000 cargo test --locked --profile bench --package lockkeeper-preemption --test proofs
    LOCKKEEPER_SEEDS=10000 LOCKKEEPER_MUTATED_WORKLOADS=120 cargo test --locked --package lockkeeper-observe --test observed_decisions
    just inter-pod-cases 5000 "$(date +%y%m%d)0000"
    just observe-kueue
    just positions-kueue 20

# Regenerate the derived files of the chart and the kustomize base
chart:
    cargo run --locked --package lockkeeper-crdgen --bin crdgen -- chart --output-dir charts/lockkeeper
    UPDATE_DOCS=1 cargo test --locked --package lockkeeper-crdgen --lib chart
    UPDATE_DOCS=1 cargo test --locked --package lockkeeper --test e2e -- "chart: the kustomize base equals"

# Build the documentation as a site, with search, and check its links
site folder="target/site":
    deploy/site/build {{folder}}

# Run the commands of the tutorial on a test cluster and compare their output
tutorial:
    cargo build --release
    tests/tutorial/run

# Check the dashboards and alerts of the chart, and fire each alert
monitoring:
    deploy/monitoring/run

# Build the linter as WebAssembly and compare its findings with those of the command
playground:
    tests/playground/run

# Test the playground of the site in Chromium: findings, accessibility, hostile texts; screenshots are in target/playground-browser
playground-browser folder="target/playground-browser":
    tests/playground/browser {{folder}}

# Build the container image for both architectures as an OCI layout, without a container engine
image folder="target/image":
    deploy/image/build {{folder}}

# Run all checks, build a release twice, compare, sign and verify it: just release 1.2.3; docs/releases.md describes it
release version *flags:
    deploy/release/run {{flags}} {{version}}

# Run the demo on a test cluster: two teams and a preemption with its explanation
demo:
    examples/demo/run

# Run Kubernetes' scheduler_perf cases of gangs and preemption with kube-scheduler and with lockkeeper: just scheduler-perf --performance 100Nodes
scheduler-perf *flags:
    tests/bench/scheduler-perf/run {{flags}}

# Compare pod affinity and topology spread with kube-scheduler's plugins on random pods and nodes
inter-pod-cases count="1000" seed="1":
    mkdir -p target
    tests/inter-pod-cases/run --count {{count}} --seed {{seed}} >target/inter-pod-cases.jsonl
    LOCKKEEPER_INTER_POD_CASES="$PWD/target/inter-pod-cases.jsonl" cargo test --locked --package lockkeeper-cluster-state --test placement -- scheduler_cases

# Run Kueue's scheduler performance test with lockkeeper and a real API server
bench-control *parts:
    tests/bench/control {{parts}}

# Run the same test with Kueue itself
bench-kueue *folder:
    tests/bench/kueue/run {{folder}}

# Run the same test with lockkeeper beside Kueue, and compare all decisions
observe-kueue *folder:
    tests/bench/kueue/observe {{folder}}

# Compare the positions of `lockkeeper queue` with those of Kueue's visibility API on random dumps: just positions-kueue 20 1
positions-kueue dumps="5" seed="1":
    tests/bench/kueue/positions/run {{dumps}} {{seed}}

# Serve the examples without a cluster
serve:
    cargo run --release -- serve
