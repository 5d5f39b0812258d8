//! Gangs and pods that preempt on nodes: what every decision keeps to, a plain reference, and an exact one.

mod events;
mod exhaustive;
mod long_runs;
mod reference;
mod properties;
mod clusters;
