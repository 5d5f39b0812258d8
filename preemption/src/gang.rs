//! Preemption for a pod or a gang on nodes: workload-aware preemption (KEP-5710).
//!
//! # The model
//!
//! A [`GangCluster`] is a [`Cluster`](crate::placement::Cluster) with pod groups, disruption budgets and nominations.
//! A [`Unit`] is preempted as a whole: a pod, or all pods of a group with [`DisruptionMode::PodGroup`]. Victims are
//! selected by their preemption priority, which is compared with the scheduling priority of the preemptor. A *domain*
//! is a set of nodes that is searched together: a single node for a pod, the whole cluster for a gang.
//!
//! # A decision
//!
//! [`GangCluster::decide`] decides on a pod or a gang. If the preemptor neither fits nor waits for victims of an
//! earlier decision, each domain is searched:
//!
//! 1. All units of lower priority are *potential victims*. If the preemptor does not fit without them, the domain is
//!    infeasible.
//! 2. They are sorted by [importance](Importance): priority, workloads before pods, more pods, earlier start, name.
//! 3. With the preemptor placed, units whose disruption would violate a budget are reprieved where possible (best
//!    effort).
//! 4. A binary search finds the lowest priority cutoff N such that the preemptor fits without the units up to N.
//! 5. The preemptor is placed again without the units up to N, and units that are not in its way are reprieved, the
//!    most important first. The remaining units are the *victims*.
//!
//! The domain with the best [`Score`] is chosen. Nothing is executed here: a [`GangPlan`] contains a placement of the
//! whole gang and all victims, so it is executed as a whole or not at all (*delayed preemption*).
//! [`GangCluster::decide_pod_by_pod`] decides for a scheduler that handles the pods of a gang one by one.
//!
//! [`SchedulerCompatibility::KubeScheduler`] follows kube-scheduler v1.37: no step 4, a single placement, no preemption
//! priorities, scores by pods. `docs/gang.md` lists the differences.
//!
//! # Cost
//!
//! Each node keeps sums of its pods' requests by priority (`reclaimable`), so step 4 is a lookup and not a walk over
//! pods. The last step tries only units on the nodes of the placement: other units are not in the way.
//!
//! # Modules
//!
//! | module | content |
//! | --- | --- |
//! | `spec` | input: options, groups, disruption budgets, pods |
//! | `cluster`, `member`, `group`, `unit`, `unit_table`, `workloads` | the state, updated by events |
//! | `reclaimable` | requests by node and priority |
//! | `importance`, `disruption_budgets`, `score` | the order of units, their protection, their cost |
//! | `request`, `reason`, `trace` | requests, decisions, reasons, traces |
//! | `preemptor`, `context`, `domain`, `hypothetical` | the input of a search |
//! | `search`, `reprieve` | the search in one domain |
//! | `decide`, `single_pod`, `pod_by_pod`, `nomination` | decisions on gangs and pods, and earlier nominations |
//!
//! # Example
//!
//! A replica of two pods is preempted as a whole, although the room of one pod would be enough:
//!
//! ```
//! use lockkeeper_preemption::Amount;
//! use lockkeeper_preemption::gang::{
//!     DisruptionMode, GangCluster, GangOptions, GangOutcome, GangTrace, GroupKey, GroupSpec, MemberSpec,
//!     PreemptionRequest, PreemptionUnitKind,
//! };
//! use lockkeeper_preemption::placement::{HostSpec, Labels, PodPreemption, PodSpec, Shape};
//!
//! let mut cluster = GangCluster::new(GangOptions::default());
//! let gpu = cluster.resource("nvidia.com/gpu");
//! let host = |name| HostSpec {
//!     name,
//!     position: 0,
//!     allocatable: vec![(gpu, Amount::new(1))],
//!     labels: Labels::default(),
//!     taints: vec![],
//!     is_unschedulable: false,
//! };
//! let hosts = [cluster.set_host(host("a")), cluster.set_host(host("b"))];
//! let replica = cluster.set_group(&GroupSpec {
//!     key: GroupKey { kind: PreemptionUnitKind::PodGroup, namespace: "team", name: "replica-0" },
//!     parent: None,
//!     mode: DisruptionMode::PodGroup,
//!     priority: Some(0),
//!     preemption_priority: None,
//!     preemption: None,
//!     count_min: Some(2),
//! });
//! let requests = vec![(gpu, Amount::new(1))];
//! let shape = cluster.shape(Shape { requests, ..Shape::default() });
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
//! let member = |pod, group| MemberSpec { pod, group, nominated: None, is_preempted: false, has_budgets: true };
//! cluster.set_pod(member(pod("leader", Some(hosts[0]), 0), Some(replica)));
//! cluster.set_pod(member(pod("worker", Some(hosts[1]), 0), Some(replica)));
//! let urgent = cluster.set_pod(member(pod("urgent", None, 10), None));
//!
//! let request = PreemptionRequest { pods: &[urgent], ..PreemptionRequest::default() };
//! let GangOutcome::Preempt(plan) = cluster.decide(&request, &mut GangTrace::off()).outcome else {
//!     panic!("the replica is a victim");
//! };
//! assert_eq!(plan.host, Some(hosts[0]));
//! let [victim] = plan.victims[..] else { panic!("one victim") };
//! let victim = cluster.units().get(victim).unwrap();
//! assert_eq!((victim.name(), victim.pods().len()), ("team/replica-0", 2));
//! ```

mod cluster;
mod context;
mod decide;
mod disruption_budgets;
mod domain;
mod group;
mod hypothetical;
mod hypothetical_pods;
mod importance;
mod member;
mod namespaces;
mod nomination;
mod pod_by_pod;
mod preemptor;
mod reason;
mod reclaimable;
mod reprieve;
mod request;
mod score;
mod search;
mod single_pod;
mod spec;
mod trace;
mod unit;
mod unit_table;
mod unused_ids;
mod workloads;

pub use cluster::GangCluster;
pub use decide::check_eligibility;
pub use domain::Domain;
pub use importance::Importance;
pub use namespaces::set_namespace;
pub use reason::{Conflict, DroppedNomination, IneligibleReason, InfeasibleReason};
pub use request::{GangDecision, GangOutcome, GangPlan, NodeSample, PreemptionRequest};
pub use score::Score;
pub use single_pod::DryRun;
pub use spec::{
    BudgetSpec, DisruptionMode, FeatureGates, GangOptions, GroupKey, GroupSpec, MemberSpec,
    PreemptionUnitKind, SchedulerCompatibility,
};
pub use trace::{GangStep, GangTrace};
pub use unit::Unit;
pub use unit_table::UnitTable;
pub use unused_ids::{ids_len, release_unused};
pub use workloads::WorkloadView;
