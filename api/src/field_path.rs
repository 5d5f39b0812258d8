//! The path of a value in an object, printed as in Kubernetes.

use std::fmt;

/// A path such as `spec.resourceGroups[0].flavors[1].name` or `metadata.labels[a/b]`.
///
/// The format is that of apimachinery's `field.Path`. Unlike it, a list index can remember the key of its item, so that
/// two versions of a list can be compared item by item even when the items moved ([`FieldPath::identity`]). Two paths
/// are equal if they have the same parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath {
    elements: Vec<Element>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    /// Nested fields, with dots between their names.
    Fields(&'static str),
    /// A field whose name may contain a dot.
    Named(Box<str>),
    Index {
        position: usize,
        key: Option<Box<str>>,
    },
    Key(Box<str>),
}

/// The initial capacity for elements, enough for most paths without reallocation.
const USUAL_DEPTH: usize = 8;

/// The initial capacity of the text, in bytes, enough for most paths.
const USUAL_LENGTH: usize = 96;

impl FieldPath {
    /// The path of a top-level field; dots separate the names of nested fields (`"spec.preemption"`).
    #[must_use]
    pub fn new(fields: &'static str) -> Self {
        let elements = Vec::with_capacity(USUAL_DEPTH);
        Self { elements }.field(fields)
    }

    /// Appends a field; dots separate the names of nested fields.
    #[must_use]
    pub fn field(mut self, fields: &'static str) -> Self {
        self.elements.push(Element::Fields(fields));
        self
    }

    /// Appends a field whose name is known only at run time.
    #[must_use]
    pub fn named(mut self, name: impl Into<Box<str>>) -> Self {
        self.elements.push(Element::Named(name.into()));
        self
    }

    /// Appends an item of a list.
    #[must_use]
    pub fn index(mut self, position: usize) -> Self {
        self.elements.push(Element::Index {
            position,
            key: None,
        });
        self
    }

    /// Appends an item of a list whose items have a name. The path prints the position; [`FieldPath::identity`] has the
    /// name.
    #[must_use]
    pub fn item(mut self, position: usize, key: &str) -> Self {
        self.elements.push(Element::Index {
            position,
            key: Some(key.into()),
        });
        self
    }

    /// Appends an entry of a map.
    #[must_use]
    pub fn key(mut self, key: impl Into<Box<str>>) -> Self {
        self.elements.push(Element::Key(key.into()));
        self
    }

    /// The path with list positions replaced by the keys of their items where they are known: it stays the same when
    /// items of a list move.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut out = String::with_capacity(USUAL_LENGTH);
        for (depth, element) in self.elements.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = match element {
                Element::Index { key: Some(key), .. } => write_key(&mut out, key),
                other => write_element(&mut out, depth, other),
            };
        }
        out
    }

    /// The path as text, in one allocation: `to_string` would reallocate while it grows.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(USUAL_LENGTH);
        // Writing to a string does not fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        if self.elements.is_empty() {
            // As `field.Path` of apimachinery prints the root.
            return out.write_str("<nil>");
        }
        for (depth, element) in self.elements.iter().enumerate() {
            write_element(out, depth, element)?;
        }
        Ok(())
    }

    /// The JSON pointer (RFC 6901) of the path.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        for element in &self.elements {
            match element {
                Element::Fields(names) => names.split('.').for_each(|name| token(&mut out, name)),
                Element::Named(name) | Element::Key(name) => token(&mut out, name),
                Element::Index { position, .. } => token(&mut out, &position.to_string()),
            }
        }
        out
    }
}

impl fmt::Display for FieldPath {
    /// The root prints `<nil>`, as it does in Kubernetes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

fn write_element(out: &mut impl fmt::Write, depth: usize, element: &Element) -> fmt::Result {
    match element {
        Element::Fields(name) => write_field(out, depth, name),
        Element::Named(name) => write_field(out, depth, name),
        Element::Index { position, .. } => write_key(out, itoa::Buffer::new().format(*position)),
        Element::Key(key) => write_key(out, key),
    }
}

fn write_field(out: &mut impl fmt::Write, depth: usize, name: &str) -> fmt::Result {
    if depth > 0 {
        out.write_char('.')?;
    }
    out.write_str(name)
}

/// The unescaped name of a part of a JSON pointer.
#[must_use]
pub fn unescaped(token: &str) -> String {
    // In this order: `~01` is the escaped text `~1`, not a slash.
    token.replace("~1", "/").replace("~0", "~")
}

fn write_key(out: &mut impl fmt::Write, key: &str) -> fmt::Result {
    out.write_char('[')?;
    out.write_str(key)?;
    out.write_char(']')
}

/// Adds one token of a JSON pointer.
fn token(out: &mut String, token: &str) {
    out.push('/');
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
        assert_eq!(path.text(), text);
        assert_eq!(path.identity(), identity);
        assert_eq!(path.pointer(), pointer);
    }

    #[test]
    fn field_path_prints_as_kubernetes() {
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
