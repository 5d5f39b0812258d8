//! Owners of jobs whose kind may be declared later.

use serde_json::Value;

/// A controlling owner of a kind that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOwner {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// The controlling owner of an object, if its kind may be declared: it is none of Kubernetes.
pub(super) fn declarable_owner(object: &Value) -> Option<UnknownOwner> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|it| it["controller"] == true)?;
    let text = |key: &str| Some(owner.get(key)?.as_str()?.to_owned());
    let version = text("apiVersion")?;
    let (group, _) = version.split_once('/')?;
    // The groups of custom resources have a dot.
    group.contains('.').then_some(UnknownOwner {
        group: group.to_owned(),
        kind: text("kind")?,
        name: text("name")?,
        uid: text("uid")?,
    })
}
