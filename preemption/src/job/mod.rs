//! Job-level preemption under elastic quotas.
//!
//! Source: Koordinator's proposal 20240115-support-job-level-preemption. `docs/job.md` has its rules R1 to R14
//! one by one, how its holes are filled, and what Koordinator's code does otherwise.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`class`] | [`Says`], [`Switches`] → [`Class`], who may trigger, [`VictimAction`] (R5, R7, R11) |
//! | [`resources`], [`quota`] | [`Resources`]; [`QuotaTree`]: [`Limits`] and [`Figures`] of quotas below quotas |
//! | [`admission`] | a job against its quota and all above: [`admission`] → [`Admission`] (R1–R4, R6) |
//! | [`runtime`], [`revoke`], [`per_pod`] | Koordinator's own ways, for who wants them |
//!
//! Everything is a function of what is passed in; names are numbers.

pub mod admission;
pub mod class;
pub mod per_pod;
pub mod quota;
pub mod resources;
pub mod revoke;
pub mod runtime;

pub use admission::{Admission, Level, Sums, admission};
pub use class::{Class, Label, Says, Switches, VictimAction};
pub use quota::{Figures, Limits, QuotaId, QuotaTree, Stage};
pub use resources::Resources;
