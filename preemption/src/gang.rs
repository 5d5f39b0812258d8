//! Who goes so that a pod, or a whole gang, finds a place on nodes: workload-aware preemption (KEP-5710).
//!
//! # The model
//!
//! A [`World`] is a [`Cluster`](crate::placement::Cluster) with pod groups, disruption budgets and nominations. What
//! is preempted as one is a [`Unit`]: a pod, or all pods of a group whose disruption mode is
//! [`DisruptionMode::PodGroup`]. A unit is preempted by the preemption priority of its workload; a preemptor holds
//! its scheduling priority against that. A *domain* is a set of nodes in one of which a preemptor is put: for a pod
//! each node, for a gang the whole cluster.
//!
//! # A decision
//!
//! [`World::decide`] takes a pod or a gang. If it does not fit, and does not wait for victims of an earlier decision,
//! each domain is searched:
//!
//! 1. All units of a lower priority are *potential victims*. If the preemptor does not fit when all are gone, the domain
//!    is infeasible.
//! 2. They are put in order of [importance](Rank): priority, workloads before pods, more pods, earlier start, name.
//! 3. With the preemptor in its place, those whose going would break a disruption budget are let off where it is
//!    possible (best effort).
//! 4. A binary search finds the least priority N such that the preemptor can be placed when nobody above N goes.
//! 5. With all up to N gone the preemptor is placed again, and whoever is not in its way is let off, the most important
//!    first. The others are the *victims*.
//!
//! The domain with the best [`Score`] is chosen. Nothing is carried out here: a [`Plan`] has a place for the whole gang
//! and all victims, so it is carried out as a whole or not at all (*delayed preemption*).
//! [`World::decide_pod_by_pod`] does the same where a scheduler sees the pods of a gang one by one.
//!
//! With [`Compatibility::KubeScheduler`] it is done as kube-scheduler v1.37 does it: no step 4, one placement for good,
//! no preemption priorities, scores by pods. `docs/gang.md` lists the differences.
//!
//! # What it costs
//!
//! Each node keeps sums of what its pods have by priority (`index`), so that "all up to N gone" is a look-up and not
//! a walk. Only units on the nodes that the preemptor gets are tried in the end: all others are not in its way.
//!
//! # The parts
//!
//! `spec` what the world is told · `world`, `membership`, `group`, `unit` what it knows · `index` sums by priority ·
//! `importance` the order · `budgets` protection · `domain` sets of nodes · `room` who counts as gone · `search` one
//! domain · `reprieve` letting off · `score` what a domain costs · `plan` decisions · `pods` single pods as preemptors
//! · `nominated` what was promised before · `legacy` pod by pod · `trace` the story.
//!
//! # Example
//!
//! A replica of two pods is preempted as one, although one of its pods would be enough:
//!
//! ```
//! use lockkeeper_preemption::Amount;
//! use lockkeeper_preemption::gang::{
//!     Ask, DisruptionMode, GroupKey, GroupSpec, Kind, MemberSpec, Options, Outcome, Trace, World,
//! };
//! use lockkeeper_preemption::placement::{HostSpec, Labels, PodPreemption, PodSpec, Shape};
//!
//! let mut world = World::new(Options::default());
//! let gpu = world.resource("nvidia.com/gpu");
//! let host = |name| HostSpec {
//!     name,
//!     position: 0,
//!     allocatable: vec![(gpu, Amount::new(1))],
//!     labels: Labels::default(),
//!     taints: vec![],
//!     is_unschedulable: false,
//! };
//! let hosts = [world.set_host(host("a")), world.set_host(host("b"))];
//! let replica = world.set_group(&GroupSpec {
//!     key: GroupKey { kind: Kind::PodGroup, namespace: "team", name: "replica-0" },
//!     parent: None,
//!     mode: DisruptionMode::PodGroup,
//!     priority: Some(0),
//!     preemption_priority: None,
//!     preemption: None,
//!     count_min: Some(2),
//! });
//! let requests = vec![(gpu, Amount::new(1))];
//! let shape = world.shape(Shape { requests, ..Shape::default() });
//! let pod = |name, host, priority| PodSpec {
//!     namespace: "team",
//!     name,
//!     host,
//!     shape,
//!     labels: Labels::default(),
//!     priority,
//!     preemption: PodPreemption::LowerPriority,
//!     started_at_ns: None,
//!     is_terminating: false,
//! };
//! let member = |pod, group| MemberSpec { pod, group, nominated: None, is_preempted: false };
//! world.set_pod(member(pod("leader", Some(hosts[0]), 0), Some(replica)));
//! world.set_pod(member(pod("worker", Some(hosts[1]), 0), Some(replica)));
//! let urgent = world.set_pod(member(pod("urgent", None, 10), None));
//!
//! let ask = Ask { pods: &[urgent], ..Ask::default() };
//! let Outcome::Preempt(plan) = world.decide(&ask, &mut Trace::off()).outcome else {
//!     panic!("there is room when the replica goes");
//! };
//! assert_eq!(plan.host, Some(hosts[0]));
//! let [victim] = plan.victims[..] else { panic!("one unit") };
//! let victim = world.unit(victim).unwrap();
//! assert_eq!((victim.name(), victim.pods().len()), ("team/replica-0", 2));
//! ```

mod cluster;
mod decide;
mod disruption_budgets;
mod domain;
mod group;
mod hypothetical;
mod importance;
mod membership;
mod nomination;
mod pod_by_pod;
mod reclaimable;
mod reprieve;
mod score;
mod search;
mod single_pod;
mod spec;
mod trace;
mod unit;

pub use cluster::GangCluster;
pub use decide::{
    DroppedNomination, GangDecision, GangOutcome, GangPlan, IneligibleReason, InfeasibleReason,
    NodeSample, PreemptionRequest,
};
pub use domain::Domain;
pub use importance::Importance;
pub use score::Score;
pub use single_pod::DryRun;
pub use spec::{
    BudgetSpec, DisruptionMode, FeatureGates, GangOptions, GroupKey, GroupSpec, MemberSpec,
    PreemptionUnitKind, SchedulerCompatibility,
};
pub use trace::{GangStep, GangTrace};
pub use unit::Unit;
