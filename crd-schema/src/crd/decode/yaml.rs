//! Reads YAML as `sigs.k8s.io/yaml`: the types of YAML 1.1, of which it knows those of `go-yaml` 2.

use super::decoded::{DEPTH_MAX, Decoded};
use crate::crd::base64;
use crate::crd::numbers;
use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The most nodes that aliases may expand to.
const ALIAS_NODES_MAX: usize = 100_000;

/// Reads the first document.
pub(super) fn decode(text: &str) -> Result<Decoded, String> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        parser: Parser::new_from_str_with_options(text, options),
        anchors: BTreeMap::new(),
        alias_nodes: 0,
        has_duplicate_keys: false,
    };
    let mut value = Value::Null;
    while let Some(event) = reader.next()? {
        match event {
            Event::StreamEnd | Event::DocumentEnd => break,
            Event::DocumentStart(_, Some(version))
                if !(version.major == 1 && version.minor == 1) =>
            {
                return Err("found incompatible YAML document".to_owned());
            }
            Event::StreamStart | Event::DocumentStart(..) => {}
            event => value = reader.node(event, DEPTH_MAX)?.into_json()?,
        }
    }
    Ok(Decoded {
        value,
        duplicates: Vec::new(),
        has_duplicate_keys: reader.has_duplicate_keys,
    })
}

/// A node before it becomes JSON, which has strings as keys only.
#[derive(Clone, Debug)]
enum Node {
    Null,
    Bool(bool),
    Integer(i64),
    /// An integer beyond 63 bits.
    Unsigned(u64),
    Float(f64),
    Text(String),
    /// The plain scalar `<<`.
    Merge,
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// The key in JSON.
    fn key(&self) -> Result<String, String> {
        Ok(match self {
            Self::Text(text) => text.clone(),
            Self::Merge => "<<".to_owned(),
            Self::Integer(integer) => integer.to_string(),
            Self::Bool(flag) => flag.to_string(),
            Self::Float(float) => float_key(*float),
            _ => return Err("unsupported map key".to_owned()),
        })
    }

    fn into_json(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => flag.into(),
            Self::Integer(integer) => integer.into(),
            #[allow(
                clippy::cast_precision_loss,
                reason = "Go decodes larger integers to floats"
            )]
            Self::Unsigned(unsigned) => (unsigned as f64).into(),
            Self::Float(float) if !float.is_finite() => {
                return Err("unsupported value: not a finite number".to_owned());
            }
            // Go encodes floats without a fraction as integers.
            Self::Float(float) if float.fract() == 0.0 && float.abs() < 9.2e18 => {
                numbers::truncate(float).into()
            }
            Self::Float(float) => float.into(),
            Self::Text(text) => text.into(),
            Self::Merge => "<<".into(),
            Self::List(items) => {
                let items: Result<Vec<Value>, String> =
                    items.into_iter().map(Self::into_json).collect();
                Value::Array(items?)
            }
            Self::Map(entries) => {
                let mut fields = Map::new();
                for (key, value) in entries {
                    fields.insert(key.key()?, value.into_json()?);
                }
                Value::Object(fields)
            }
        })
    }

    /// The number of nodes.
    fn count(&self) -> usize {
        let below: usize = match self {
            Self::List(items) => items.iter().map(Self::count).sum(),
            Self::Map(entries) => entries.iter().map(|(_, value)| value.count()).sum(),
            _ => 0,
        };
        below.saturating_add(1)
    }
}

/// A float as a key: the shortest text of a 32-bit float.
fn float_key(float: f64) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the text has the precision of 32 bits"
    )]
    let single = float as f32;
    match single {
        it if it.is_nan() => ".nan".to_owned(),
        it if it.is_infinite() && it > 0.0 => ".inf".to_owned(),
        it if it.is_infinite() => "-.inf".to_owned(),
        it => it.to_string(),
    }
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: BTreeMap<usize, Node>,
    alias_nodes: usize,
    has_duplicate_keys: bool,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Option<Event<'t>>, String> {
        loop {
            let next: Option<Result<(Event<'t>, Span), _>> = self.parser.next();
            match next {
                None => return Ok(None),
                Some(Err(error)) => return Err(error.to_string()),
                Some(Ok((Event::Comment(..) | Event::Anchor(..), _))) => {}
                Some(Ok((event, _))) => return Ok(Some(event)),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, depth: usize) -> Result<Node, String> {
        let Some(below) = depth.checked_sub(1) else {
            return Err("exceeded max depth".to_owned());
        };
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(text, style, tag.as_deref())?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Some(Event::SequenceEnd) => break,
                        Some(event) => items.push(self.node(event, below)?),
                        None => return Err("unexpected end".to_owned()),
                    }
                }
                (Node::List(items), anchor)
            }
            Event::MappingStart(_, anchor, _) => (self.mapping(below)?, anchor),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or_else(|| "unknown anchor".to_owned())?;
                self.alias_nodes = self.alias_nodes.saturating_add(node.count());
                if self.alias_nodes > ALIAS_NODES_MAX {
                    return Err("document contains excessive aliasing".to_owned());
                }
                return Ok(node);
            }
            _ => return Err("unexpected YAML".to_owned()),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn mapping(&mut self, depth: usize) -> Result<Node, String> {
        let mut map = MapBuilder::default();
        loop {
            let key = match self.next()? {
                Some(Event::MappingEnd) => break,
                Some(event) => self.node(event, depth)?,
                None => return Err("unexpected end".to_owned()),
            };
            let Some(event) = self.next()? else {
                return Err("unexpected end".to_owned());
            };
            let value = self.node(event, depth)?;
            match key {
                Node::Merge => map.merge(value)?,
                Node::List(_) | Node::Map(_) => return Err("invalid map key".to_owned()),
                key => map.set(key, value),
            }
        }
        self.has_duplicate_keys |= map.has_duplicate_keys;
        Ok(Node::Map(map.entries))
    }
}

/// The entries of a mapping, in the order in which `go-yaml` sets them: the last of duplicate keys counts.
#[derive(Default)]
struct MapBuilder {
    entries: Vec<(Node, Node)>,
    positions: BTreeMap<String, usize>,
    has_duplicate_keys: bool,
}

impl MapBuilder {
    fn set(&mut self, key: Node, value: Node) {
        let id = format!("{key:?}");
        if let Some(position) = self.positions.get(&id) {
            self.has_duplicate_keys = true;
            if let Some(entry) = self.entries.get_mut(*position) {
                entry.1 = value;
            }
        } else {
            self.positions.insert(id, self.entries.len());
            self.entries.push((key, value));
        }
    }

    /// Sets the entries of a merged mapping, or of several, of which the first ones count.
    fn merge(&mut self, value: Node) -> Result<(), String> {
        let maps = match value {
            Node::List(items) => items,
            other => vec![other],
        };
        for map in maps.into_iter().rev() {
            let Node::Map(added) = map else {
                return Err("map merge requires map or sequence of maps as the value".to_owned());
            };
            for (key, value) in added {
                self.set(key, value);
            }
        }
        Ok(())
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Node, String> {
    let tag = tag.map(Tag::suffix).unwrap_or_default();
    let is_plain = style == ScalarStyle::Plain;
    let resolved = if tag.is_empty() && is_plain {
        resolve(&text)
    } else {
        None
    };
    let node = match tag {
        "" | "!" => resolved.unwrap_or_else(|| Node::Text(text.into_owned())),
        "int" | "float" | "bool" | "null" => {
            let resolved = resolve(&text);
            match (tag, resolved) {
                ("float", Some(Node::Integer(integer))) => {
                    #[allow(clippy::cast_precision_loss, reason = "the tag asks for a float")]
                    let float = integer as f64;
                    Node::Float(float)
                }
                ("int", Some(node @ (Node::Integer(_) | Node::Unsigned(_))))
                | ("float", Some(node @ Node::Float(_)))
                | ("bool", Some(node @ Node::Bool(_)))
                | ("null", Some(node @ Node::Null)) => node,
                _ => return Err(format!("cannot decode {text:?} as a {tag}")),
            }
        }
        "binary" => match base64::decode(&text, base64::Alphabet::Standard) {
            Some(bytes) => Node::Text(String::from_utf8_lossy(&bytes).into_owned()),
            None => return Err("!!binary value contains invalid base64 data".to_owned()),
        },
        _ => Node::Text(text.into_owned()),
    };
    Ok(node)
}

/// The type of a plain scalar; `None` for a text.
fn resolve(text: &str) -> Option<Node> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Node::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Node::Bool(false)
        }
        "" | "~" | "null" | "Null" | "NULL" => Node::Null,
        ".nan" | ".NaN" | ".NAN" => Node::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Node::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Node::Float(f64::NEG_INFINITY),
        "<<" => Node::Merge,
        _ => return number(text),
    })
}

fn number(text: &str) -> Option<Node> {
    let first = text.chars().next()?;
    if first == '.' {
        return go_float(text).map(Node::Float);
    }
    if !(first.is_ascii_digit() || first == '+' || first == '-') || is_timestamp(text) {
        return None;
    }
    let plain = text.replace('_', "");
    let (is_negative, digits) = match plain.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    if let Some(magnitude) = go_integer(digits) {
        let magnitude = i128::from(magnitude);
        let signed = if is_negative {
            magnitude.saturating_neg()
        } else {
            magnitude
        };
        if let Ok(integer) = i64::try_from(signed) {
            return Some(Node::Integer(integer));
        }
        if !plain.starts_with(['+', '-'])
            && let Ok(unsigned) = u64::try_from(signed)
        {
            return Some(Node::Unsigned(unsigned));
        }
    }
    is_yaml_float(&plain).then(|| {
        plain
            .parse()
            .ok()
            .filter(|it: &f64| it.is_finite())
            .map(Node::Float)
    })?
}

/// `strconv.ParseUint` with base 0: prefixes for other bases, underscores removed.
fn go_integer(digits: &str) -> Option<u64> {
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    let is_number = !digits.starts_with(['+', '-']);
    u64::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_number)
}

fn is_yaml_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (text, None),
    };
    let has_exponent = exponent.is_none_or(|it| {
        let digits = it.strip_prefix(['+', '-']).unwrap_or(it);
        !digits.is_empty() && is_digits(digits)
    });
    let is_number = match number.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
        None => !number.is_empty() && is_digits(number),
    };
    has_exponent && is_number
}

/// A float that begins with a dot.
fn go_float(text: &str) -> Option<f64> {
    is_yaml_float(text).then(|| text.parse().ok())?
}

/// Whether a scalar is a timestamp, which stays a text.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_year = bytes
        .get(..4)
        .is_some_and(|it| it.iter().all(u8::is_ascii_digit));
    is_year && bytes.get(4) == Some(&b'-')
}
