//! The answer of a preview, and its text.

use std::fmt;

/// What the controller will do with a workload. The texts name no object in another namespace, except ClusterQueues and
/// flavors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preview {
    /// It is admitted in the next cycle.
    Starts {
        /// The flavors, sorted.
        flavors: Vec<String>,
        /// The pods, if fewer than requested are admitted.
        pods: Option<PreviewedPods>,
        /// Whether the ClusterQueue places workloads on nodes, which a preview does not consider.
        needs_nodes: bool,
    },
    /// It preempts workloads in the next cycle, and waits until they have released their quota.
    Preempts {
        /// The victims in its own namespace.
        in_namespace: usize,
        /// The victims in other namespaces.
        elsewhere: usize,
    },
    /// It waits in its queue.
    Waits {
        /// Its ClusterQueue.
        cluster_queue: String,
        /// The number of pending workloads in front of it.
        ahead: usize,
        /// Whether more workloads than `ahead` are in front of it.
        is_ahead_cut: bool,
        /// Why the next cycle does not admit it; empty if it considers another workload.
        why: String,
    },
    /// It is not admitted before an object changes.
    Never {
        /// Why.
        why: String,
    },
}

/// The pods of a workload that is admitted in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewedPods {
    /// The admitted pods.
    pub admitted: i64,
    /// The requested pods.
    pub requested: i64,
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starts {
                flavors,
                pods,
                needs_nodes,
            } => {
                f.write_str(if *needs_nodes {
                    "gets quota now"
                } else {
                    "runs now"
                })?;
                if let Some(pods) = pods {
                    write!(f, " with {} of {} pods", pods.admitted, pods.requested)?;
                }
                match flavors.as_slice() {
                    [] => {}
                    [flavor] => write!(f, " on flavor {flavor}")?,
                    more => write!(f, " on flavors {}", more.join(", "))?,
                }
                f.write_str(if *needs_nodes {
                    "; room on nodes is not checked"
                } else {
                    ""
                })
            }
            Self::Preempts {
                in_namespace,
                elsewhere,
            } => {
                let own = (*in_namespace > 0).then(|| format!("{in_namespace} of this namespace"));
                let other = (*elsewhere > 0).then(|| format!("{elsewhere} of other namespaces"));
                let all = in_namespace.saturating_add(*elsewhere);
                let parts: Vec<String> = own.into_iter().chain(other).collect();
                write!(f, "would preempt {} ({})", workloads(all), parts.join(", "))
            }
            Self::Waits {
                cluster_queue,
                ahead,
                is_ahead_cut,
                why,
            } => {
                write!(f, "waits in ClusterQueue {cluster_queue}")?;
                if *ahead > 0 {
                    let more = if *is_ahead_cut { "more than " } else { "" };
                    write!(f, " behind {more}{}", workloads(*ahead))?;
                }
                match why.as_str() {
                    "" => Ok(()),
                    why => write!(f, ": {why}"),
                }
            }
            Self::Never { why } => write!(f, "never runs until an object changes: {why}"),
        }
    }
}

fn workloads(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} workload{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_state_the_outcome() {
        let starts = |flavors: &[&str], pods, needs_nodes| Preview::Starts {
            flavors: flavors.iter().map(|it| (*it).to_owned()).collect(),
            pods,
            needs_nodes,
        };
        let pods = PreviewedPods {
            admitted: 3,
            requested: 5,
        };
        let waits = |ahead, is_ahead_cut, why: &str| Preview::Waits {
            cluster_queue: "q".to_owned(),
            ahead,
            is_ahead_cut,
            why: why.to_owned(),
        };
        let preempts = |in_namespace, elsewhere| Preview::Preempts {
            in_namespace,
            elsewhere,
        };
        for (preview, expected) in [
            (starts(&["a100"], None, false), "runs now on flavor a100"),
            (
                starts(&["a", "b"], Some(pods), false),
                "runs now with 3 of 5 pods on flavors a, b",
            ),
            (starts(&[], None, false), "runs now"),
            (
                starts(&["a"], None, true),
                "gets quota now on flavor a; room on nodes is not checked",
            ),
            (
                preempts(1, 0),
                "would preempt 1 workload (1 of this namespace)",
            ),
            (
                preempts(1, 2),
                "would preempt 3 workloads (1 of this namespace, 2 of other namespaces)",
            ),
            (waits(0, false, "w"), "waits in ClusterQueue q: w"),
            (
                waits(1, false, ""),
                "waits in ClusterQueue q behind 1 workload",
            ),
            (
                waits(1000, true, ""),
                "waits in ClusterQueue q behind more than 1000 workloads",
            ),
            (
                Preview::Never {
                    why: "x".to_owned(),
                },
                "never runs until an object changes: x",
            ),
        ] {
            assert_eq!(preview.to_string(), expected);
        }
    }
}
