//! String formats as `k8s.io/kube-openapi/pkg/validation/strfmt` validates them.

mod codes;
mod email;
mod known;
pub(super) mod net;
pub(crate) mod time;
pub(super) mod uri;

pub(super) use known::check;
pub use known::is_known;
