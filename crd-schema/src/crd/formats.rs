//! String formats as `k8s.io/kube-openapi/pkg/validation/strfmt` validates them.

mod codes;
mod email;
mod known;
pub(crate) mod net;
pub(crate) mod time;
pub(crate) mod uri;

pub(super) use known::check;
pub use known::is_known;
