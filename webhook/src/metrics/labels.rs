//! The values that labels can have. Nothing a client sends becomes one.

use super::fixed_family;

/// A closed set of values of one label.
macro_rules! label {
    ($(#[$doc:meta])* $type:ident, $label:literal, {
        $($(#[$value_doc:meta])* $value:ident => $text:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $type {
            $($(#[$value_doc])* $value,)+
        }

        impl $type {
            /// All of its values.
            pub(super) const ALL: &[Self] = &[$(Self::$value,)+];

            /// The value as it is written.
            pub(super) fn text(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }

            /// The label with its values, in the order of the variants.
            pub(super) fn label() -> fixed_family::LabelValues {
                ($label, Self::ALL.iter().map(|it| it.text().to_owned()).collect())
            }

            /// Where its value stands among them.
            pub(super) fn place(self) -> usize {
                self as usize
            }
        }
    };
}

label!(
    /// What came of a request.
    AdmissionOutcome, "verdict", {
        /// Accepted, and nothing was said.
        Allowed => "allowed",
        /// Refused for what the object is.
        Denied => "denied",
        /// Accepted with warnings.
        Warned => "warned",
        /// No verdict: the request could not be read or made no sense, or the client went away.
        Error => "error",
    }
);

label!(
    /// What a request does to an object.
    OperationLabel, "operation", {
        /// It is made.
        Create => "create",
        /// It is changed.
        Update => "update",
        /// It is deleted.
        Delete => "delete",
        /// Something no rule runs on, or it could not be read.
        Other => "other",
    }
);

label!(
    /// The path that was asked.
    ReviewPath, "path", {
        /// Whether it is good.
        Validate => "validate",
        /// What is filled in.
        Mutate => "mutate",
        /// The same in another version.
        Convert => "convert",
    }
);

impl ReviewPath {
    /// The label with those that admission reviews are sent to, which are the first ones.
    pub(super) fn admission_label() -> fixed_family::LabelValues {
        let all = [Self::Validate, Self::Mutate];
        ("path", all.map(|it| it.text().to_owned()).to_vec())
    }
}

label!(
    /// What came of a conversion review.
    ConversionOutcome, "result", {
        /// All objects were converted.
        Converted => "converted",
        /// One could not be, so none was.
        Rejected => "refused",
        /// The request could not be read, or it was not done in time, or the client went away.
        Error => "error",
    }
);

label!(
    /// What was done about a finding.
    HitAction, "action", {
        /// The object was refused.
        Enforce => "enforce",
        /// The client was warned.
        Warn => "warn",
        /// The audit log was told.
        Audit => "audit",
        /// Nothing but that: an exception covers the object.
        Exempt => "excused",
    }
);

label!(
    /// What came of looking for an object that the stores do not have.
    LookupOutcome, "result", {
        /// The API server has it.
        Found => "found",
        /// The API server does not have it, or no object can have that name.
        Absent => "absent",
        /// It was absent a moment ago, so nobody was asked.
        Cached => "remembered",
        /// The API server refused or could not be reached.
        Failed => "failed",
        /// The API server did not answer in time.
        TimedOut => "late",
    }
);

label!(
    /// What came of reading something anew.
    ReloadOutcome, "result", {
        /// It holds from now on.
        Applied => "applied",
        /// It is broken, and the old one goes on.
        Rejected => "refused",
    }
);
