//! The values of the label `kind`.

use lockkeeper_policies::registry::{self, Registration};

/// A kind with its own label value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KindLabel {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) name: String,
    /// The label value: with the group for kinds of other projects, since some have the same name as
    /// one of lockkeeper's.
    pub(crate) label: String,
}

impl KindLabel {
    fn from_registration(registered: Registration) -> Self {
        let Registration { group, kind, .. } = registered;
        Self {
            label: match registered.foreign {
                None => kind.clone(),
                Some(_) => format!("{kind}.{group}"),
            },
            group,
            version: registered.version,
            name: kind,
        }
    }
}

/// Returns the kinds that webhook configurations may send.
pub(super) fn kind_labels() -> Vec<KindLabel> {
    registry::known_registrations()
        .into_iter()
        .map(KindLabel::from_registration)
        .collect()
}
