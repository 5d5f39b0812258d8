//! Damping on or off.

/// Whether freed quota is held for its preemptor, and preemption loops are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damping {
    /// Quota is held and loops are cut.
    #[default]
    On,
    /// Quota is not held and loops are not cut, as in Kueue.
    Off,
}
