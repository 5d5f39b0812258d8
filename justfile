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

# The controller killed again and again, and a flood of 10,000 workloads: just control-drills 600
control-drills seconds="600":
    LOCKKEEPER_DRILL_SECONDS={{seconds}} cargo test --locked --package lockkeeper --test e2e -- "control: faults"

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

# Fuzz every parser, two at a time, for ten minutes each: just fuzz SECONDS [TARGET...]
fuzz seconds="600" *targets:
    tests/fuzz/run {{seconds}} {{targets}}

# What of the search for victims and the quota no test of the core would miss: nightly, it takes hours
mutants *flags:
    LOCKKEEPER_PROPTEST_CASES=120 LOCKKEEPER_SHRINK_STEPS=0 cargo mutants --output target --package lockkeeper-preemption --test-package lockkeeper-preemption --test-package lockkeeper-snapshot --file 'preemption/src/victims/*.rs' --file 'preemption/src/quota/*.rs' --timeout 120 {{flags}} -- --lib --test beyond --test proofs --test conformance

# The long forms of what CI does in short: hours
nightly: (fuzz "3600") (drills "2000") (control-drills "600")
    LOCKKEEPER_STEPS=1000000 LOCKKEEPER_SMALL_WORLDS=1 LOCKKEEPER_LOOP_WORLDS=200000 cargo test --locked --release --package lockkeeper-preemption --test proofs
    just mutants

# lockkeeper on a test cluster: two teams, a preemption, and why
demo:
    examples/demo/run

# What the controller costs beside a real API server: Kueue's performance test
bench-control *parts:
    tests/bench/control {{parts}}

# Serve the examples without a cluster
serve:
    cargo run --release -- serve
