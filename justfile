# The ways to work on lockkeeper. `just` alone lists them.

default:
    @just --list

# What CI runs first; no cluster, no network once the dependencies are there
check: fmt-check lint deny
    cargo test --locked --workspace

# Everything, the end-to-end tests included
test:
    tests/run

# The end-to-end tests alone
e2e *words:
    cargo test --locked --package lockkeeper --test e2e -- {{words}}

# The drills under more load than CI gives them: just drills 2000
drills requests="2000":
    LOCKKEEPER_DRILL_REQUESTS={{requests}} cargo test --locked --package lockkeeper --test e2e -- drill

# The controller killed again and again, cut off, and flooded with workloads: just control-drills 600 10000
control-drills seconds="600" workloads="10000":
    LOCKKEEPER_DRILL_SECONDS={{seconds}} LOCKKEEPER_FLOOD_WORKLOADS={{workloads}} cargo test --locked --package lockkeeper --test e2e -- "control: faults"

fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

lint:
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cargo clippy --locked --package lockkeeper --test e2e -- -D warnings
    cargo clippy --locked --workspace --all-targets --features lockkeeper/otel,lockkeeper-webhook/otel -- -D warnings

# Licences, sources and duplicate versions of dependencies; unused ones
deny:
    cargo deny --all-features check bans licenses sources
    cargo machete

# A rule's file and page, registered: just new-rule workload toleration-without-key
new-rule kind name:
    policies/new-rule {{kind}} {{name}}

# What the webhook costs a request, beside a do-nothing path
bench:
    tests/bench/webhook

# What the preemption core costs, beside a plain reference
bench-core *parts:
    cargo bench --package lockkeeper-preemption --bench preemption -- {{parts}}

# What a review costs in instructions, against what it cost before
instructions *flags:
    tests/bench/instructions {{flags}}

# What decisions on nodes cost in instructions, against what they cost before
instructions-placement *flags:
    tests/bench/placement {{flags}}

# Fuzz every parser, two at a time, for ten minutes each: just fuzz SECONDS [TARGET...]
fuzz seconds="600" *targets:
    tests/fuzz/run {{seconds}} {{targets}}

# Mutants are tried in a copy, from which what lies beside the repository is not seen.
# Those that change nothing but the cost are left out.
decisions := if path_exists(justfile_directory() / "../shared/data") == "true" { justfile_directory() / "../shared/data" } else { "tests/conformance/data" }
mutate := "LOCKKEEPER_SHRINK_STEPS=0 LOCKKEEPER_CONFORMANCE_DIR=" + quote(decisions) + " cargo mutants --output target --package lockkeeper-preemption --file 'preemption/src/victims/*.rs' --file 'preemption/src/quota/*.rs' --exclude-re 'is_dirty -> bool with true' --exclude-re '> with >= in Tree::(add|remove)_usage' --exclude-re 'PartialEq for Head'"

# What of the search for victims and the quota no test would miss, in an hour or two: just mutants --re fair.rs
[positional-arguments]
mutants *flags:
    @echo "By the core's own tests, without the long ones; optimized a little, they take a tenth of the time:"
    CARGO_PROFILE_DEV_OPT_LEVEL=1 {{mutate}} --timeout 120 --test-package lockkeeper-preemption "$@" -- --locked --lib --test beyond --test proofs -- --skip loops || case $? in 2 | 3) ;; *) exit 1 ;; esac
    @echo "By the long ones, and by what Kueue decided, what is left:"
    LOCKKEEPER_CONFORMANCE_DIR={{quote(decisions)}} cargo test --locked --package lockkeeper-scenario --test conformance
    {{mutate}} --iterate --baseline skip --timeout 300 --test-package lockkeeper-preemption --test-package lockkeeper-scenario "$@" -- --locked --test proofs --test conformance || test $? = 3

# The long forms of what CI does in short: hours
nightly: (fuzz "3600") (drills "2000") (control-drills "600") image
    LOCKKEEPER_CASES=5000 cargo test --locked --package lockkeeper-crdgen --test agreement
    LOCKKEEPER_STEPS=1000000 LOCKKEEPER_SMALL_WORLDS=1 LOCKKEEPER_LOOP_WORLDS=200000 cargo test --locked --release --package lockkeeper-preemption --test proofs
    just mutants

# What is derived in the chart and the kustomize base, anew
chart:
    cargo run --locked --package lockkeeper-crdgen --bin crdgen -- chart --output-dir charts/lockkeeper
    UPDATE_DOCS=1 cargo test --locked --package lockkeeper-crdgen --lib chart
    UPDATE_DOCS=1 cargo test --locked --package lockkeeper --test e2e -- "chart: the kustomize base is what"

# The container image for both architectures as an OCI layout, without an engine: two release builds
image folder="target/image":
    deploy/image/build {{folder}}

# lockkeeper on a test cluster: two teams, a preemption, and why
demo:
    examples/demo/run

# What the controller costs beside a real API server: Kueue's performance test
bench-control *parts:
    tests/bench/control {{parts}}

# The same test of Kueue itself, unchanged
bench-kueue *folder:
    tests/bench/kueue/run {{folder}}

# Serve the examples without a cluster
serve:
    cargo run --release -- serve
