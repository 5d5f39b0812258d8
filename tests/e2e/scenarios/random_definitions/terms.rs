//! Random CEL terms of a given type.

use super::expressions::{Expressions, Type};
use super::texts;

impl Expressions<'_> {
    /// A term of a type.
    pub(super) fn term(&mut self, kind: &Type, depth: usize) -> String {
        if self.rng.percent(55)
            && let Some(it) = self.selection(|it| it == kind)
        {
            return it.text;
        }
        if depth == 0 {
            return self.literal(kind);
        }
        let depth = depth - 1;
        match kind {
            Type::Int => self.int(depth),
            Type::Double => self.double(depth),
            Type::Text => self.text(depth),
            Type::Time => self.time(depth),
            Type::Duration => self.duration(depth),
            Type::List(item) => self.list(item, depth),
            Type::Bool => format!("({})", self.condition(depth)),
            _ => self.literal(kind),
        }
    }

    fn literal(&mut self, kind: &Type) -> String {
        match kind {
            Type::Bool => self.rng.one_in(2).to_string(),
            Type::Int => match texts::integer(self.rng) {
                i64::MIN => "0".to_owned(),
                it if it < 0 => format!("({it})"),
                it => it.to_string(),
            },
            Type::Double => (*self.rng.pick(&["0.5", "1.0", "2.25", "1e3", "(-1.5)"])).to_owned(),
            Type::Text => quoted(texts::text(self.rng)),
            Type::Bytes => format!("b{}", quoted(texts::text(self.rng))),
            Type::Time => {
                let times = [
                    "2026-01-02T00:00:00Z",
                    "2026-01-02T03:04:05Z",
                    "1999-12-31T23:59:59.5Z",
                ];
                format!("timestamp('{}')", self.rng.pick(&times))
            }
            Type::Duration => {
                format!("duration('{}')", self.rng.pick(&["5s", "1h", "-2ms", "0s"]))
            }
            Type::List(item) => {
                let count = if **item == Type::Object {
                    0
                } else {
                    self.rng.below(3)
                };
                let items: Vec<String> = (0..count).map(|_| self.literal(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Type::Map(item) if **item == Type::Object => "{}".to_owned(),
            Type::Map(item) => format!("{{'a': {}}}", self.literal(item)),
            Type::Object => "{}".to_owned(),
            Type::Dynamic => format!("dyn({})", self.literal(&Type::Int)),
        }
    }

    fn int(&mut self, depth: usize) -> String {
        match self.rng.below(12) {
            0 => {
                let operator = *self.rng.pick(&["+", "-", "*", "/", "%"]);
                let left = self.term(&Type::Int, depth);
                format!("({left} {operator} {})", self.term(&Type::Int, depth))
            }
            1 => format!("size({})", self.unbounded_text(depth)),
            2..4 => format!("size({})", self.term(&Type::Text, depth)),
            4..6 => match self.selection(|it| matches!(it, Type::List(_) | Type::Map(_))) {
                Some(it) => format!("{}.size()", it.text),
                None => self.literal(&Type::Int),
            },
            6 => {
                let [left, right] = [0, 1].map(|_| self.term(&Type::Text, depth));
                let name = *self.rng.pick(&["indexOf", "lastIndexOf"]);
                format!("{left}.{name}({right})")
            }
            7 => {
                let list = self.term(&Type::List(Box::new(Type::Int)), depth);
                let name = *self.rng.pick(&["sum", "min", "max"]);
                format!("{list}.{name}()")
            }
            8 => {
                let time = self.term(&Type::Time, depth);
                let name = *self
                    .rng
                    .pick(&["getFullYear", "getDayOfWeek", "getHours", "getDate"]);
                let zone = *self.rng.pick(&["", "", "'Europe/Berlin'", "'-02:30'"]);
                format!("{time}.{name}({zone})")
            }
            9 => format!("int({})", self.term(&Type::Double, depth)),
            10 => self.parsed("int", "-12", depth),
            _ => format!(
                "({} ? {} : {})",
                self.condition(depth),
                self.term(&Type::Int, depth),
                self.term(&Type::Int, depth)
            ),
        }
    }

    fn double(&mut self, depth: usize) -> String {
        match self.rng.below(3) {
            0 => {
                let operator = *self.rng.pick(&["+", "-", "*", "/"]);
                let left = self.term(&Type::Double, depth);
                format!("({left} {operator} {})", self.term(&Type::Double, depth))
            }
            1 => format!("double({})", self.term(&Type::Int, depth)),
            _ => self.parsed("double", "2.5", depth),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        if self.rng.one_in(25) {
            return self.unbounded_text(depth);
        }
        let text = self.term(&Type::Text, depth);
        let number = self.rng.below(4);
        match self.rng.below(7) {
            0 => format!("({text} + {})", self.term(&Type::Text, depth)),
            1 => format!("{text}.lowerAscii()"),
            2 => format!("{text}.trim()"),
            3 => format!("{text}.substring({number})"),
            4 => format!("{text}.replace('a', {})", self.literal(&Type::Text)),
            5 => format!("({} ? {text} : 'other')", self.condition(depth)),
            _ => format!("{text}.upperAscii()"),
        }
    }

    /// A text of which the API server does not estimate the length: most functions on it exceed the cost limit.
    pub(super) fn unbounded_text(&mut self, depth: usize) -> String {
        let text = self.term(&Type::Text, depth);
        let number = self.rng.below(4);
        match self.rng.below(11) {
            8 => format!("string({})", self.term(&Type::Time, depth)),
            9 => format!("strings.quote({text})"),
            10 => {
                let [int, double] = [Type::Int, Type::Double].map(|it| self.term(&it, depth));
                format!("'%x %.2f %e %s'.format([{int}, {double}, {double}, [{text}]])")
            }
            0 => format!("string({})", self.term(&Type::Int, depth)),
            1 => format!("string({})", self.term(&Type::Double, depth)),
            2 => format!("string({})", self.term(&Type::Duration, depth)),
            3 => format!("{text}.charAt({number})"),
            4 => {
                let texts = self.term(&Type::List(Box::new(Type::Text)), depth);
                format!("{texts}.join(',')")
            }
            5 => format!("{text}.find('[0-9]+')"),
            6 => {
                let other = self.term(&Type::Int, depth);
                format!("'%s:%d'.format([{text}, {other}])")
            }
            _ => format!("{text}.split('.')[{number}]"),
        }
    }

    /// A call of a conversion of a text; a text that it does not convert is an error.
    fn parsed(&mut self, function: &str, valid: &str, depth: usize) -> String {
        let text = match self.selection(|it| *it == Type::Text) {
            Some(it) if self.rng.one_in(2) => it.text,
            _ if self.rng.one_in(20) => self.term(&Type::Text, depth),
            _ => quoted(valid),
        };
        format!("{function}({text})")
    }

    fn time(&mut self, depth: usize) -> String {
        match self.rng.below(3) {
            0 => self.parsed("timestamp", "2026-01-02T03:04:05.5+01:00", depth),
            1 => format!(
                "({} + {})",
                self.term(&Type::Time, depth),
                self.term(&Type::Duration, depth)
            ),
            _ => self.literal(&Type::Time),
        }
    }

    fn duration(&mut self, depth: usize) -> String {
        match self.rng.below(3) {
            0 => self.parsed("duration", "90m", depth),
            1 => format!(
                "({} - {})",
                self.term(&Type::Time, depth),
                self.term(&Type::Time, depth)
            ),
            _ => self.literal(&Type::Duration),
        }
    }

    fn list(&mut self, item: &Type, depth: usize) -> String {
        let kind = Type::List(Box::new(item.clone()));
        match self.rng.below(9) {
            0 => format!(
                "({} + {})",
                self.term(&kind, depth),
                self.term(&kind, depth)
            ),
            1 | 2 => {
                let mut list = self.term(&kind, depth);
                if list.contains("[]") {
                    list = format!("[{}]", self.literal(item));
                }
                let [name, condition] =
                    self.condition_on(&serde_json::Value::Null, item.clone(), depth);
                format!("{list}.filter({name}, {condition})")
            }
            3 | 4 => match self.selection(|it| matches!(it, Type::List(_))) {
                Some(source) => {
                    let Type::List(from) = source.kind else {
                        return source.text;
                    };
                    let items = &source.schema["items"];
                    let [name, term] = self.term_on(items, *from, item, depth);
                    format!("{}.map({name}, {term})", source.text)
                }
                None => self.literal(&kind),
            },
            5 if *item == Type::Text => format!("{}.split(',')", self.term(item, depth)),
            5 if *item == Type::Int => format!("lists.range({})", self.rng.below(5)),
            6 => format!("{}.distinct()", self.term(&kind, depth)),
            7 => format!("{}.reverse()", self.term(&kind, depth)),
            8 if matches!(item, Type::Int | Type::Text) => {
                format!("{}.sort()", self.term(&kind, depth))
            }
            _ => self.literal(&kind),
        }
    }
}

/// A literal of a text.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('\'', "\\'")
        .replace('\n', "\\n");
    format!("'{escaped}'")
}
