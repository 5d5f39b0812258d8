//! The object of a request, for messages.

/// The object of a request, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectIdentity<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}
