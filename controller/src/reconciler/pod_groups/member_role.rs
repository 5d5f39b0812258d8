//! What a pod does in its group.

/// The part of a pod in its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::reconciler) enum MemberRole {
    /// It is one of the pods of this pod set.
    Member(String),
    /// It does not start with the group.
    Excluded(MemberProblem),
}

/// Why a pod of a group does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::reconciler) enum MemberProblem {
    /// The number of pods of the group is missing or invalid.
    NoTotal,
    /// The `PodGroup` that its pods name does not exist.
    NoPodGroup,
    /// It differs from the first pod of the group in this field.
    Differs(&'static str),
    /// The group has its number of pods without it, or the admission has no place for its shape.
    Full,
}
