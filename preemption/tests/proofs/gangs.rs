//! Preemption of gangs and pods on nodes: properties of every decision, a plain reference, and an exhaustive one.

mod clusters;
mod events;
mod exhaustive;
mod inter_pod;
mod long_runs;
mod properties;
mod reference;
