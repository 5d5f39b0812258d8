//! Where in an object a value stands, printed as Kubernetes prints it.

use std::borrow::Cow;
use std::fmt;

/// A path such as `spec.resourceGroups[0].flavors[1].name` or `metadata.labels[a/b]`.
///
/// The format is that of apimachinery's `field.Path`. Unlike it, a list index can remember the key
/// of its item, so that two versions of a list can be compared item by item even when the items
/// moved ([`FieldPath::identity`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath {
    elements: Vec<Element>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    Field(Cow<'static, str>),
    Index {
        position: usize,
        key: Option<Box<str>>,
    },
    Key(Box<str>),
}

impl FieldPath {
    /// The path of a top-level field; dots part the names of nested fields (`"spec.preemption"`).
    #[must_use]
    pub fn new(fields: &'static str) -> Self {
        Self::default().field(fields)
    }

    /// Goes down to a field; dots part the names of nested fields.
    #[must_use]
    pub fn field(mut self, fields: &'static str) -> Self {
        self.elements.extend(
            fields
                .split('.')
                .map(|name| Element::Field(Cow::Borrowed(name))),
        );
        self
    }

    /// Goes down to a field whose name is known only at run time.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.elements.push(Element::Field(Cow::Owned(name.into())));
        self
    }

    /// Goes down to an item of a list.
    #[must_use]
    pub fn index(mut self, position: usize) -> Self {
        self.elements.push(Element::Index {
            position,
            key: None,
        });
        self
    }

    /// Goes down to an item of a list whose items have a name. The path prints the position; two
    /// paths are the same for [`FieldPath::identity`] when the names agree.
    #[must_use]
    pub fn item(mut self, position: usize, key: &str) -> Self {
        self.elements.push(Element::Index {
            position,
            key: Some(key.into()),
        });
        self
    }

    /// Goes down to an entry of a map.
    #[must_use]
    pub fn key(mut self, key: impl Into<Box<str>>) -> Self {
        self.elements.push(Element::Key(key.into()));
        self
    }

    /// The path with list positions replaced by the keys of their items where they are known: what
    /// stays the same when items of a list change places.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut out = String::new();
        for (depth, element) in self.elements.iter().enumerate() {
            let keyed = match element {
                Element::Index { key: Some(key), .. } => Some(Element::Key(key.clone())),
                _ => None,
            };
            // Writing to a string does not fail.
            let _ = write_element(&mut out, depth, keyed.as_ref().unwrap_or(element));
        }
        out
    }

    /// The JSON pointer (RFC 6901) of the same place.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        for element in &self.elements {
            out.push('/');
            match element {
                Element::Field(name) => escape(&mut out, name),
                Element::Index { position, .. } => out.push_str(&position.to_string()),
                Element::Key(key) => escape(&mut out, key),
            }
        }
        out
    }
}

impl fmt::Display for FieldPath {
    /// The root prints `<nil>`, as it does in Kubernetes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.elements.is_empty() {
            return f.write_str("<nil>");
        }
        for (depth, element) in self.elements.iter().enumerate() {
            write_element(f, depth, element)?;
        }
        Ok(())
    }
}

fn write_element(out: &mut impl fmt::Write, depth: usize, element: &Element) -> fmt::Result {
    match element {
        Element::Field(name) => {
            if depth > 0 {
                out.write_char('.')?;
            }
            out.write_str(name)
        }
        Element::Index { position, .. } => write!(out, "[{position}]"),
        Element::Key(key) => {
            out.write_char('[')?;
            out.write_str(key)?;
            out.write_char(']')
        }
    }
}

fn escape(out: &mut String, token: &str) {
    for c in token.chars() {
        match c {
            '~' => out.push_str("~0"),
            '/' => out.push_str("~1"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &FieldPath, text: &str, identity: &str, pointer: &str) {
        assert_eq!(path.to_string(), text);
        assert_eq!(path.identity(), identity);
        assert_eq!(path.pointer(), pointer);
    }

    #[test]
    fn prints_as_kubernetes_does() {
        check(
            &FieldPath::new("spec.resourceGroups")
                .index(0)
                .field("flavors")
                .item(1, "spot")
                .field("name"),
            "spec.resourceGroups[0].flavors[1].name",
            "spec.resourceGroups[0].flavors[spot].name",
            "/spec/resourceGroups/0/flavors/1/name",
        );
        check(
            &FieldPath::new("metadata.labels").key("a/b~c"),
            "metadata.labels[a/b~c]",
            "metadata.labels[a/b~c]",
            "/metadata/labels/a~1b~0c",
        );
        check(&FieldPath::default(), "<nil>", "", "");
        check(
            &FieldPath::default().named("from input"),
            "from input",
            "from input",
            "/from input",
        );
    }
}
