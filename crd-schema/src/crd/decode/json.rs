//! Reads JSON as `sigs.k8s.io/json`: case-sensitive, the last of duplicate fields counts, lone surrogates are replaced.

use super::decoded::{DEPTH_MAX, Decoded};
use crate::crd::pruning::join;
use serde_json::{Map, Value};

/// The most duplicates that are reported.
const DUPLICATES_MAX: usize = 100;

/// The value of a field that is set more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// The last value.
    Replace,
    /// All values, decoded into one variable in turn, as Go does for typed objects.
    Merge,
}

/// Reads one value.
pub(super) fn decode(text: &str, on_duplicate: Duplicates) -> Result<Decoded, String> {
    let mut reader = Reader {
        rest: text,
        on_duplicate,
        duplicates: Vec::new(),
        is_too_large: false,
    };
    let value = reader.value("", DEPTH_MAX)?;
    reader.skip_space();
    if !reader.rest.is_empty() {
        return Err(reader.unexpected("after the top-level value"));
    }
    if reader.is_too_large {
        return Err("a number exceeds the range of 64-bit floats".to_owned());
    }
    Ok(Decoded {
        value,
        duplicates: reader.duplicates,
        has_duplicate_keys: false,
    })
}

struct Reader<'a> {
    rest: &'a str,
    on_duplicate: Duplicates,
    duplicates: Vec<String>,
    is_too_large: bool,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn unexpected(&self, place: &str) -> String {
        match self.rest.chars().next() {
            Some(sign) => format!("invalid character {sign:?} {place}"),
            None => "unexpected end of JSON input".to_owned(),
        }
    }

    /// Takes a prefix.
    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, prefix: &str, place: &str) -> Result<(), String> {
        self.skip_space();
        if self.take(prefix) {
            Ok(())
        } else {
            Err(self.unexpected(place))
        }
    }

    fn value(&mut self, path: &str, depth: usize) -> Result<Value, String> {
        let Some(below) = depth.checked_sub(1) else {
            return Err("exceeded max depth".to_owned());
        };
        self.skip_space();
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(path, below),
            Some(b'[') => self.array(path, below),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ if self.take("null") => Ok(Value::Null),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn object(&mut self, path: &str, depth: usize) -> Result<Value, String> {
        self.take("{");
        let mut fields = Map::new();
        self.skip_space();
        if self.take("}") {
            return Ok(Value::Object(fields));
        }
        loop {
            self.skip_space();
            if !self.rest.starts_with('"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let name = self.string()?;
            self.expect(":", "after object key")?;
            let field = join(path, &name);
            let value = self.value(&field, depth)?;
            let earlier = fields.remove(&name);
            let is_duplicate = earlier.is_some();
            let value = match earlier {
                Some(earlier) if self.on_duplicate == Duplicates::Merge => merged(earlier, value),
                _ => value,
            };
            fields.insert(name, value);
            if is_duplicate
                && self.duplicates.len() < DUPLICATES_MAX
                && !self.duplicates.contains(&field)
            {
                self.duplicates.push(field);
            }
            self.skip_space();
            if self.take("}") {
                return Ok(Value::Object(fields));
            }
            self.expect(",", "after object key:value pair")?;
        }
    }

    fn array(&mut self, path: &str, depth: usize) -> Result<Value, String> {
        self.take("[");
        let mut items = Vec::new();
        self.skip_space();
        if self.take("]") {
            return Ok(Value::Array(items));
        }
        loop {
            let path = format!("{path}[{}]", items.len());
            items.push(self.value(&path, depth)?);
            self.skip_space();
            if self.take("]") {
                return Ok(Value::Array(items));
            }
            self.expect(",", "after array element")?;
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.take("\"");
        let mut out = String::new();
        loop {
            let end = self.rest.find(|it| it == '"' || it == '\\' || it < ' ');
            let (plain, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            out.push_str(plain);
            self.rest = rest;
            if self.take("\"") {
                return Ok(out);
            }
            if !self.take("\\") {
                return Err(self.unexpected("in string literal"));
            }
            self.escape(&mut out)?;
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), String> {
        let Some(sign) = self.rest.chars().next() else {
            return Err(self.unexpected("in string escape code"));
        };
        let plain = match sign {
            '"' | '\\' | '/' => Some(sign),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => None,
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.rest = self.rest.get(sign.len_utf8()..).unwrap_or_default();
        if let Some(plain) = plain {
            out.push(plain);
            return Ok(());
        }
        let first = self.code_unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.rest.starts_with("\\u") {
            let before = self.rest;
            self.take("\\u");
            let second = self.code_unit()?;
            if (0xdc00..0xe000).contains(&second) {
                units.push(second);
            } else {
                self.rest = before;
            }
        }
        out.push_str(&String::from_utf16_lossy(&units));
        Ok(())
    }

    fn code_unit(&mut self) -> Result<u16, String> {
        let digits = self
            .rest
            .get(..4)
            .filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        let Some(digits) = digits else {
            return Err(self.unexpected("in \\u hexadecimal character escape"));
        };
        let unit = u16::from_str_radix(digits, 16).map_err(|it| it.to_string())?;
        self.rest = self.rest.get(4..).unwrap_or_default();
        Ok(unit)
    }

    fn digits(text: &str) -> &str {
        text.trim_start_matches(|it: char| it.is_ascii_digit())
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.rest;
        self.take("-");
        let after = Self::digits(self.rest);
        if after.len() == self.rest.len() {
            return Err(self.unexpected("in numeric literal"));
        }
        // A zero ends the integer part.
        self.rest = if self.rest.starts_with('0') {
            self.rest.get(1..).unwrap_or_default()
        } else {
            after
        };
        if self.take(".") {
            self.required_digits("after decimal point in numeric literal")?;
        }
        if self.take("e") || self.take("E") {
            let _ = self.take("+") || self.take("-");
            self.required_digits("in exponent of numeric literal")?;
        }
        let end = start.len().saturating_sub(self.rest.len());
        let text = start.get(..end).unwrap_or_default();
        if let Ok(integer) = text.parse::<i64>() {
            return Ok(integer.into());
        }
        let float: f64 = text.parse().map_err(|_| format!("invalid number {text}"))?;
        self.is_too_large |= !float.is_finite();
        Ok(float.into())
    }

    fn required_digits(&mut self, place: &str) -> Result<(), String> {
        let after = Self::digits(self.rest);
        if after.len() == self.rest.len() {
            return Err(self.unexpected(place));
        }
        self.rest = after;
        Ok(())
    }
}

/// A value that is decoded into a variable with an earlier value.
fn merged(earlier: Value, value: Value) -> Value {
    match (earlier, value) {
        (Value::Object(mut fields), Value::Object(later)) => {
            for (name, value) in later {
                let earlier = fields.remove(&name).unwrap_or_default();
                fields.insert(name, merged(earlier, value));
            }
            Value::Object(fields)
        }
        (Value::Array(items), Value::Array(later)) => {
            let mut items = items.into_iter();
            let later = later.into_iter();
            later
                .map(|it| merged(items.next().unwrap_or_default(), it))
                .collect()
        }
        (earlier @ Value::Object(_), Value::Null) => earlier,
        (_, value) => value,
    }
}
