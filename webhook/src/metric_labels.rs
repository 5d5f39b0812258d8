//! The values of metric labels. No part of a request becomes a label value.

/// A label and all its values.
pub(crate) type LabelValues = (&'static str, Vec<String>);

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
            /// All values.
            pub(crate) const ALL: &[Self] = &[$(Self::$value,)+];

            /// Returns the label value.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }

            /// Returns the label with its values, in the order of the variants.
            pub(crate) fn label() -> LabelValues {
                ($label, Self::ALL.iter().map(|it| it.as_str().to_owned()).collect())
            }

            /// Returns the index of the value in [`Self::ALL`].
            pub(crate) fn index(self) -> usize {
                self as usize
            }
        }
    };
}

label!(
    /// The result of an admission review.
    AdmissionOutcome, "verdict", {
        /// Allowed without warnings.
        Allowed => "allowed",
        /// Rejected by a rule.
        Denied => "denied",
        /// Allowed with warnings.
        Warned => "warned",
        /// Not evaluated: the request was invalid, timed out, or the client disconnected.
        Error => "error",
    }
);

label!(
    /// The operation of a request.
    OperationLabel, "operation", {
        /// The object is created.
        Create => "create",
        /// The object is updated.
        Update => "update",
        /// The object is deleted.
        Delete => "delete",
        /// Another operation, or the request was invalid.
        Other => "other",
    }
);

label!(
    /// The path of a request.
    ReviewPath, "path", {
        /// Validation.
        Validate => "validate",
        /// Defaults.
        Mutate => "mutate",
        /// Conversion to another version.
        Convert => "convert",
    }
);

impl ReviewPath {
    /// Returns the label with the paths of admission reviews, which are the first values.
    pub(crate) fn admission_label() -> LabelValues {
        let all = [Self::Validate, Self::Mutate];
        ("path", all.map(|it| it.as_str().to_owned()).to_vec())
    }
}

label!(
    /// The result of a conversion review.
    ConversionOutcome, "result", {
        /// All objects were converted.
        Converted => "converted",
        /// An object could not be converted, so none was.
        Rejected => "rejected",
        /// The request was invalid, timed out, or the client disconnected.
        Error => "error",
    }
);

label!(
    /// The action for a finding.
    HitAction, "action", {
        /// The object was rejected.
        Enforce => "enforce",
        /// The client got a warning.
        Warn => "warn",
        /// The audit log got an annotation.
        Audit => "audit",
        /// The audit log got an annotation, because an exception applies to the object.
        Exempt => "exempted",
    }
);

label!(
    /// The result of the lookup of an object that the stores do not have.
    LookupOutcome, "result", {
        /// The API server has it.
        Found => "found",
        /// The API server does not have it, or no object can have that name.
        Absent => "not_found",
        /// The negative cache has it, so no request was sent.
        Cached => "cached",
        /// The API server returned an error or could not be reached.
        Failed => "failed",
        /// The API server did not respond before the deadline.
        TimedOut => "timeout",
    }
);

label!(
    /// The result of a reload.
    ReloadOutcome, "result", {
        /// The new one is used.
        Applied => "applied",
        /// The new one is invalid, and the old one stays.
        Rejected => "rejected",
    }
);
