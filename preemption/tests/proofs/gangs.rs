//! Gangs and pods that preempt on nodes: what every decision keeps to, a plain reference, and an exact one.

mod clusters;
mod events;
mod exhaustive;
mod long_runs;
mod properties;
mod reference;
