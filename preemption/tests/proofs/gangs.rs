//! Gangs and pods that preempt on nodes: what every decision keeps to, a plain reference, and an exact one.

mod events;
mod exact;
mod life;
mod plain;
mod properties;
mod town;
