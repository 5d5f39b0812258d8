//! Paths of fields in a declaration, such as `spec.runPolicy.suspend` or `spec['a.b'].template`.

use serde_json::Value;
use std::fmt;

/// The most fields of a path.
const DEPTH_MAX: usize = 16;

/// The path of a field; it names at least one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobPath {
    fields: Vec<String>,
}

/// A text that is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobPathError {
    /// A name is missing, as in `spec..suspend`.
    #[error("a field has no name; write names with a dot between them, such as spec.suspend")]
    EmptyName,
    /// A bracket is not closed, or has no quoted name.
    #[error("a bracket needs a quoted name, such as spec['a.b']")]
    Bracket,
    /// Another sign than a dot or a bracket follows a bracket.
    #[error("a dot or a bracket must follow a bracket")]
    AfterBracket,
    /// The path names too many fields.
    #[error("the path has more than {DEPTH_MAX} fields")]
    TooDeep,
}

impl JobPath {
    /// Parses a path.
    ///
    /// # Errors
    ///
    /// A [`JobPathError`] if the text is no path.
    pub fn parse(text: &str) -> Result<Self, JobPathError> {
        let mut fields = Vec::new();
        let mut rest = text;
        loop {
            let name;
            if let Some(quoted) = rest.strip_prefix("['") {
                let (inside, after) = quoted.split_once("']").ok_or(JobPathError::Bracket)?;
                (name, rest) = (inside, after);
                if !rest.is_empty() && !rest.starts_with(['.', '[']) {
                    return Err(JobPathError::AfterBracket);
                }
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                (name, rest) = rest.split_at(end);
                if name.contains([']', '\'']) {
                    return Err(JobPathError::Bracket);
                }
            }
            if name.is_empty() {
                return Err(if rest.starts_with('[') {
                    JobPathError::Bracket
                } else {
                    JobPathError::EmptyName
                });
            }
            fields.push(name.to_owned());
            if fields.len() > DEPTH_MAX {
                return Err(JobPathError::TooDeep);
            }
            if rest.is_empty() {
                return Ok(Self { fields });
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
    }

    /// The names of the fields, from the root.
    pub fn fields(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.fields.iter().map(String::as_str)
    }

    /// Whether the first field has this name, and others follow.
    #[must_use]
    pub fn is_below(&self, name: &str) -> bool {
        self.fields.len() > 1 && self.fields.first().is_some_and(|it| it == name)
    }

    /// Whether the paths are equal, or one is that of a field inside the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.fields().zip(other.fields()).all(|(a, b)| a == b)
    }

    /// The value of the field in an object; `None` if it is absent or null.
    #[must_use]
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let found = self
            .fields()
            .try_fold(object, |value, name| value.get(name));
        found.filter(|it| !it.is_null())
    }

    /// Whether a merge patch of the field changes nothing else: the values on the way to it are objects, or absent.
    #[must_use]
    pub fn is_writable(&self, object: &Value) -> bool {
        let Some((_, way)) = self.fields.split_last() else {
            return false;
        };
        let mut value = object;
        for name in way {
            match value.get(name) {
                Some(Value::Object(_)) => {}
                None | Some(Value::Null) => return value.is_object(),
                Some(_) => return false,
            }
            value = value.get(name).unwrap_or(&Value::Null);
        }
        value.is_object()
    }

    /// An object that has only this field, with a value.
    #[must_use]
    pub fn wrap(&self, value: Value) -> Value {
        self.fields().rev().fold(value, |value, name| {
            let mut object = serde_json::Map::new();
            object.insert(name.to_owned(), value);
            Value::Object(object)
        })
    }
}

impl fmt::Display for JobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.fields().enumerate() {
            if name.contains(['.', '[']) {
                write!(f, "['{name}']")?;
            } else if position == 0 {
                f.write_str(name)?;
            } else {
                write!(f, ".{name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use serde_json::json;

    #[test]
    fn path_names_fields() {
        for (text, expected) in [
            ("spec", vec!["spec"]),
            (
                "spec.runPolicy.suspend",
                vec!["spec", "runPolicy", "suspend"],
            ),
            ("spec['a.b'].c", vec!["spec", "a.b", "c"]),
            ("spec['a.b']['c']", vec!["spec", "a.b", "c"]),
            ("['a.b']", vec!["a.b"]),
        ] {
            let path = JobPath::parse(text).unwrap();
            assert_eq!(path.fields().collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn path_with_a_mistake_is_rejected() {
        for (text, expected) in [
            ("", JobPathError::EmptyName),
            ("spec.", JobPathError::EmptyName),
            ("spec..a", JobPathError::EmptyName),
            (".spec", JobPathError::EmptyName),
            ("spec[0]", JobPathError::Bracket),
            ("spec['a'", JobPathError::Bracket),
            ("spec['']", JobPathError::EmptyName),
            ("spec['a']b", JobPathError::AfterBracket),
            ("spec.a]", JobPathError::Bracket),
            (&"a.".repeat(20), JobPathError::TooDeep),
        ] {
            assert_eq!(JobPath::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn paths_overlap_if_one_is_inside_the_other() {
        for (a, b, expected) in [
            ("spec.a", "spec.a", true),
            ("spec.a", "spec.a.b", true),
            ("spec.a.b", "spec", true),
            ("spec.a", "spec.ab", false),
            ("spec.a.b", "spec.a.c", false),
        ] {
            let path = |text| JobPath::parse(text).unwrap();
            assert_eq!(path(a).overlaps(&path(b)), expected, "{a} {b}");
        }
    }

    #[test]
    fn wrap_is_the_inverse_of_get() {
        for text in ["spec.suspend", "spec['a.b'].c", "x"] {
            let path = JobPath::parse(text).unwrap();
            assert_eq!(path.get(&path.wrap(json!(7))), Some(&json!(7)));
            assert_eq!(path.to_string(), text);
            assert_eq!(path.get(&json!({"spec": null})), None);
        }
    }
}
