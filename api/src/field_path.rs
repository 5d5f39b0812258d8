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
    /// The names of the elements that are known only at run time, one after another: one allocation for all of them.
    names: String,
}

/// An element; its name, if it is known only at run time, has this length in [`FieldPath::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Fields(&'static str),
    Named { length: usize },
    Index { position: usize },
    Item { position: usize, length: usize },
    Key { length: usize },
}

/// An element with its name.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// Nested fields, with dots between their names.
    Fields(&'static str),
    /// A field whose name may contain a dot.
    Named(&'a str),
    Index {
        position: usize,
        key: Option<&'a str>,
    },
    Key(&'a str),
}

/// The initial capacity for elements, enough for most paths without reallocation.
const USUAL_DEPTH: usize = 8;

/// The initial capacity for the names of elements, in bytes, enough for most paths.
const USUAL_NAMES_LENGTH: usize = 64;

/// The initial capacity of the text, in bytes, enough for most paths.
const USUAL_LENGTH: usize = 96;

impl FieldPath {
    /// The path of a top-level field; dots separate the names of nested fields (`"spec.preemption"`).
    #[must_use]
    pub fn new(fields: &'static str) -> Self {
        let empty = Self {
            elements: Vec::with_capacity(USUAL_DEPTH),
            names: String::new(),
        };
        empty.field(fields)
    }

    /// Appends a field; dots separate the names of nested fields.
    #[must_use]
    pub fn field(mut self, fields: &'static str) -> Self {
        self.elements.push(Element::Fields(fields));
        self
    }

    /// Appends a field whose name is known only at run time.
    #[must_use]
    pub fn named(mut self, name: impl AsRef<str>) -> Self {
        let length = self.push_name(name.as_ref());
        self.elements.push(Element::Named { length });
        self
    }

    /// Appends an item of a list.
    #[must_use]
    pub fn index(mut self, position: usize) -> Self {
        self.elements.push(Element::Index { position });
        self
    }

    /// Appends an item of a list whose items have a name. The path prints the position; [`FieldPath::identity`] has the
    /// name.
    #[must_use]
    pub fn item(mut self, position: usize, key: &str) -> Self {
        let length = self.push_name(key);
        self.elements.push(Element::Item { position, length });
        self
    }

    /// Appends an entry of a map.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<str>) -> Self {
        let length = self.push_name(key.as_ref());
        self.elements.push(Element::Key { length });
        self
    }

    /// Appends the parts of a path that begins here.
    #[must_use]
    pub fn join(mut self, below: &Self) -> Self {
        self.elements.extend_from_slice(&below.elements);
        self.names.push_str(&below.names);
        self
    }

    fn push_name(&mut self, name: &str) -> usize {
        if self.names.is_empty() {
            self.names.reserve(USUAL_NAMES_LENGTH);
        }
        self.names.push_str(name);
        name.len()
    }

    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut names = self.names.as_str();
        let mut next_name = move |length: usize| {
            // The lengths are those of the names, so the split is always in bounds.
            let (name, rest) = names.split_at_checked(length).unwrap_or_default();
            names = rest;
            name
        };
        self.elements.iter().map(move |element| match *element {
            Element::Fields(names) => Part::Fields(names),
            Element::Named { length } => Part::Named(next_name(length)),
            Element::Index { position } => Part::Index {
                position,
                key: None,
            },
            Element::Item { position, length } => Part::Index {
                position,
                key: Some(next_name(length)),
            },
            Element::Key { length } => Part::Key(next_name(length)),
        })
    }

    /// The path with list positions replaced by the keys of their items where they are known: it stays the same when
    /// items of a list move.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut out = String::with_capacity(USUAL_LENGTH);
        for (depth, part) in self.parts().enumerate() {
            // Writing to a string does not fail.
            let _ = match part {
                Part::Index { key: Some(key), .. } => write_key(&mut out, key),
                other => write_part(&mut out, depth, other),
            };
        }
        out
    }

    /// The path as text, in one allocation: `to_string` would reallocate while it grows.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(USUAL_LENGTH);
        self.push_to(&mut out);
        out
    }

    /// Appends the path to a text.
    pub fn push_to(&self, out: &mut String) {
        // Writing to a string does not fail.
        let _ = self.write(out);
    }

    fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        if self.elements.is_empty() {
            // As `field.Path` of apimachinery prints the root.
            return out.write_str("<nil>");
        }
        for (depth, part) in self.parts().enumerate() {
            write_part(out, depth, part)?;
        }
        Ok(())
    }

    /// The JSON pointer (RFC 6901) of the path.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        for part in self.parts() {
            match part {
                Part::Fields(names) => names.split('.').for_each(|name| token(&mut out, name)),
                Part::Named(name) | Part::Key(name) => token(&mut out, name),
                Part::Index { position, .. } => token(&mut out, &position.to_string()),
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

fn write_part(out: &mut impl fmt::Write, depth: usize, part: Part<'_>) -> fmt::Result {
    match part {
        Part::Fields(name) | Part::Named(name) => write_field(out, depth, name),
        Part::Index { position, .. } => write_key(out, itoa::Buffer::new().format(position)),
        Part::Key(key) => write_key(out, key),
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
    fn join_appends_all_parts() {
        let below = FieldPath::new("a.b").item(3, "key").key("c/d");
        let path = FieldPath::new("spec").named("x.y").join(&below);
        assert_eq!(path.to_string(), "spec.x.y.a.b[3][c/d]");
        assert_eq!(path.pointer(), "/spec/x.y/a/b/3/c~1d");
        assert_eq!(path.clone().join(&FieldPath::default()), path);
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
