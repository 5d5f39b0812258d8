//! Prints the placement of a workload on nodes.

use crate::node_answer::{NodeAnswer, NodePlacementAnswer, PlacementResult};
use std::fmt::{self, Write};

/// The most nodes of a pod set that are printed.
const NODES_MAX: usize = 10;

/// Writes the sections about nodes.
pub(crate) fn write_placement(
    out: &mut impl Write,
    placement: &NodePlacementAnswer,
) -> fmt::Result {
    let heading = match placement.result {
        PlacementResult::Fits => "Fits on nodes",
        PlacementResult::Preempts => "Fits on nodes after the preemption of other pods",
        PlacementResult::WaitsForVictims => "Fits on nodes when terminating pods are gone",
        // The first line has the obstacles.
        PlacementResult::DoesNotFit => "",
    };
    if !heading.is_empty() {
        writeln!(out, "\n{heading}")?;
    }
    for pod_set in &placement.pod_sets {
        for (node, pods) in &pod_set.nodes {
            let noun = if *pods == 1 { "pod" } else { "pods" };
            let name = &pod_set.pod_set;
            writeln!(out, "  node {node}: {pods} {noun} of pod set {name}")?;
        }
    }
    if !placement.victims.is_empty() {
        writeln!(out, "\nWould preempt on nodes")?;
        for victim in &placement.victims {
            let budget = if victim.violates_budget {
                ", against its disruption budget"
            } else {
                ""
            };
            writeln!(out, "  {} {}{budget}", victim.kind, victim.name)?;
        }
    }
    if placement.result == PlacementResult::Fits {
        return Ok(());
    }
    writeln!(out, "\nNodes")?;
    let of_pod_sets = placement
        .nodes
        .chunk_by(|one, other| one.pod_set == other.pod_set);
    for nodes in of_pod_sets {
        for node in nodes.iter().take(NODES_MAX) {
            writeln!(out, "  {}", node_line(node))?;
        }
        let more = nodes.len().saturating_sub(NODES_MAX);
        if more > 0 {
            writeln!(out, "  {more} more")?;
        }
    }
    Ok(())
}

fn node_line(node: &NodeAnswer) -> String {
    let free = node
        .free
        .iter()
        .map(|(name, amount)| format!("{amount} {name}"));
    let free: Vec<String> = free.collect();
    let free = if free.is_empty() {
        String::new()
    } else {
        format!(" ({} free)", free.join(", "))
    };
    let text = match &node.obstacle {
        None => "a pod fits",
        Some(obstacle) => obstacle,
    };
    let after = if node.fits_after_preemption {
        "; a pod fits without those of lower priority"
    } else {
        ""
    };
    format!(
        "{}, pod set {}: {text}{free}{after}",
        node.node, node.pod_set
    )
}
