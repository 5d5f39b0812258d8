//! Random CEL conditions.

use super::expressions::{Expressions, Type};

impl Expressions<'_> {
    /// A condition.
    pub(super) fn condition(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.comparison(0);
        }
        let depth = depth - 1;
        match self.rng.below(20) {
            0 => format!("!({})", self.condition(depth)),
            1 => format!("{} && {}", self.condition(depth), self.condition(depth)),
            2 => format!("({}) || ({})", self.condition(depth), self.condition(depth)),
            3 => format!(
                "({}) ? ({}) : ({})",
                self.condition(depth),
                self.condition(depth),
                self.condition(depth)
            ),
            4..6 => self.list_condition(depth),
            6 => self.map_condition(depth),
            7..10 => self.text_condition(depth),
            10..12 => self.library_condition(depth),
            12 => self.optional_condition(depth),
            13 => self.set_condition(depth),
            14 => self.dynamic_condition(depth),
            15 => self.equality(depth),
            _ => self.comparison(depth),
        }
    }

    fn comparison(&mut self, depth: usize) -> String {
        let operator = *self.rng.pick(&["==", "!=", "<", "<=", ">", ">="]);
        if self.rng.one_in(8)
            && let Some(it) = self.selection(|it| *it == Type::Bool)
        {
            return it.text;
        }
        let kinds = [
            Type::Int,
            Type::Int,
            Type::Text,
            Type::Text,
            Type::Double,
            Type::Time,
            Type::Duration,
            Type::Bytes,
        ];
        let left = self.rng.pick(&kinds).clone();
        let right = match left {
            // Numbers of different types are comparable, and equal only if they are dynamic.
            Type::Int if !matches!(operator, "==" | "!=") && self.rng.one_in(6) => Type::Double,
            _ if self.is_wrong() => Type::Bool,
            _ => left.clone(),
        };
        let left = self.term(&left, depth);
        format!("{left} {operator} {}", self.term(&right, depth))
    }

    /// Compares a selected value with a value of the same type.
    fn equality(&mut self, depth: usize) -> String {
        let Some(left) = self.selection(|_| true) else {
            return self.comparison(depth);
        };
        let operator = *self.rng.pick(&["==", "!="]);
        if left.kind == Type::Dynamic && self.rng.one_in(3) || self.is_wrong() {
            return format!("{} {operator} null", left.text);
        }
        let other = self
            .selection(|it| *it == left.kind && *it != Type::Object)
            .map(|it| it.text);
        let right = match other {
            Some(right) => right,
            None if left.kind == Type::Object => left.text.clone(),
            None => self.term(&left.kind, depth),
        };
        format!("{} {operator} {right}", left.text)
    }

    fn list_condition(&mut self, depth: usize) -> String {
        let Some(list) = self.selection(|it| matches!(it, Type::List(_))) else {
            return self.text_condition(depth);
        };
        let Type::List(item) = list.kind else {
            return list.text;
        };
        let (text, items) = (list.text, &list.schema["items"]);
        match self.rng.below(14) {
            9 if *item != Type::Object => {
                let other = self.term(&item, depth);
                format!("{text}[?0].orValue({other}) == {other}")
            }
            10 if *item != Type::Object => format!("{text}[0] != {}", self.term(&item, depth)),
            11 => {
                let [variable, term] = self.term_on(items, *item, &Type::Text, depth);
                format!("{text}.transformList(i, {variable}, {term}).exists(t, t == 'a')")
            }
            12 => format!("{text}.first() == {text}.last()"),
            13 => format!("{text}.slice(0, 1).size() < 2 && [{text}, {text}].flatten().size() > 2"),
            0..4 => {
                let name = *self.rng.pick(&["all", "exists", "exists_one"]);
                let [variable, condition] = self.condition_on(items, *item, depth);
                format!("{text}.{name}({variable}, {condition})")
            }
            4 => {
                let name = *self.rng.pick(&["all", "exists", "existsOne"]);
                let [variable, condition] = self.condition_on(items, *item, depth);
                format!("{text}.{name}(i, {variable}, i < 2 || ({condition}))")
            }
            5 => {
                let [variable, condition] = self.condition_on(items, *item, depth);
                let size = self.rng.below(3);
                format!("{text}.filter({variable}, {condition}).size() <= {size}")
            }
            6 if *item != Type::Object => {
                format!("{} in {text}", self.term(&item, depth))
            }
            7 if is_ordered(&item) => format!("{text}.isSorted()"),
            _ if *item != Type::Object => {
                let other = self.term(&Type::List(item), depth);
                format!("({text} + {other}) == {text}")
            }
            _ => format!("{text}.size() < {}", self.rng.below(4)),
        }
    }

    fn map_condition(&mut self, depth: usize) -> String {
        let Some(map) = self.selection(|it| matches!(it, Type::Map(_))) else {
            return self.list_condition(depth);
        };
        let Type::Map(item) = map.kind else {
            return map.text;
        };
        let (text, items) = (map.text, &map.schema["additionalProperties"]);
        match self.rng.below(9) {
            7 if *item != Type::Object => {
                let other = self.term(&item, depth);
                format!("{text}[?'a'].optMap(o, o == {other}).orValue(true)")
            }
            8 => format!("{text}.transformMapEntry(k, w, k != 'b', {{k + 'x': w}}).size() == 1"),
            0 | 1 => {
                let name = *self.rng.pick(&["all", "exists", "exists_one"]);
                let [variable, condition] =
                    self.condition_on(&serde_json::Value::Null, Type::Text, depth);
                format!("{text}.{name}({variable}, {condition})")
            }
            2 | 3 => {
                let name = *self.rng.pick(&["all", "exists", "existsOne"]);
                let [variable, condition] = self.condition_on(items, *item, depth);
                format!("{text}.{name}(k, {variable}, k != 'a' && ({condition}))")
            }
            4 => format!("'{}' in {text}", self.rng.pick(&["a", "foo", "x-y"])),
            5 if *item != Type::Object => {
                let other = self.term(&item, depth);
                format!("{text}['a'] == {other} || size({text}) > 1")
            }
            _ => {
                let [variable, term] = self.term_on(items, *item, &Type::Int, depth);
                format!("{text}.transformMap(k, {variable}, {term}).size() < 3")
            }
        }
    }

    fn text_condition(&mut self, depth: usize) -> String {
        let text = self.term(&Type::Text, depth);
        match self.rng.below(6) {
            5 => {
                let text = self.unbounded_text(depth);
                format!("{text} == {}", self.term(&Type::Text, 0))
            }
            0 => {
                if self.is_wrong() {
                    return format!("{text}.find('[') == ''");
                }
                let pattern = *self
                    .rng
                    .pick(&["^[a-z]+$", "a|b", "^\\\\d", "(?i)BAR", ".{2}"]);
                format!("{text}.matches('{pattern}')")
            }
            at => {
                let name = ["startsWith", "endsWith", "contains", "contains"][at - 1];
                format!("{text}.{name}({})", self.term(&Type::Text, depth))
            }
        }
    }

    fn library_condition(&mut self, depth: usize) -> String {
        let text = self.term(&Type::Text, depth.min(1));
        let number = self.rng.below(8);
        match self.rng.below(24) {
            0 => format!("isQuantity({text})"),
            1 => format!("isIP({text})"),
            2 => format!("isCIDR({text})"),
            3 => format!("isURL({text})"),
            4 => format!("isSemver({text})"),
            5 => {
                let name = *self.rng.pick(&["isGreaterThan", "isLessThan"]);
                format!("isQuantity({text}) && quantity({text}).{name}(quantity('{number}k'))")
            }
            6 => format!(
                "quantity('1Gi').add(quantity('{number}Mi')).compareTo(quantity('1.5Gi')) {} 0",
                self.rng.pick(&["==", "<", ">"])
            ),
            7 => format!("quantity({text}).asInteger() < {number}"),
            8 => format!("isIP({text}) ? ip({text}).family() == 4 : true"),
            9 => format!("isCIDR({text}) && cidr({text}).containsIP('10.0.0.1')"),
            10 => format!("!isURL({text}) || url({text}).getHost() != 'example.com'"),
            11 => format!("isSemver({text}) ? semver({text}).major() < {number} : true"),
            12 => format!(
                "!format.{}().validate({text}).hasValue()",
                self.rng
                    .pick(&["dns1123Label", "qualifiedName", "labelValue", "uri", "byte"])
            ),
            13 => format!("url({text}).getQuery().size() < {number}"),
            15 => format!("ip.isCanonical({text}) || ip({text}).isLoopback()"),
            16 => format!("cidr({text}).masked().containsCIDR('10.{number}.0.0/16')"),
            17 => format!("!isCIDR({text}) || string(cidr({text}).ip()) == '10.0.0.0'"),
            18 => format!("isURL({text}) && url({text}).getPort() == '8080'"),
            19 => format!("url({text}).getEscapedPath() == '/a%20b' || {number} > 3"),
            20 => format!(
                "isSemver({text}, true) && semver({text}, true).compareTo(semver('1.{number}.0')) < 0"
            ),
            21 => format!("isQuantity({text}) && quantity({text}).isInteger()"),
            22 => format!("quantity({text}).sub({number}).asApproximateFloat() < 100.0"),
            23 => format!(
                "format.named('dns1123Subdomain').value().validate({text}) == optional.none()"
            ),
            14 => format!("isQuantity({text}) ? sign(quantity({text})) >= 0 : true"),
            _ => format!("cidr({text}).prefixLength() >= {number}"),
        }
    }

    fn optional_condition(&mut self, depth: usize) -> String {
        let found = self.selection(|it| matches!(it, Type::Int | Type::Text | Type::Double));
        let Some((target, kind)) = found.map(|it| (it.text, it.kind)) else {
            return self.comparison(depth);
        };
        let Some((parent, field)) = target.rsplit_once('.') else {
            return self.comparison(depth);
        };
        let other = self.term(&kind, depth);
        match self.rng.below(5) {
            0 => format!("{parent}.?{field}.orValue({other}) == {other}"),
            1 => format!("{parent}.?{field}.hasValue()"),
            2 => format!("{parent}.?{field}.optMap(o, o == {other}).orValue(false)"),
            3 => format!("optional.of({target}).or(optional.none()).value() != {other}"),
            _ => format!("optional.ofNonZeroValue({target}) == optional.none()"),
        }
    }

    fn set_condition(&mut self, depth: usize) -> String {
        let kind = self.rng.pick(&[Type::Int, Type::Text]).clone();
        let kind = Type::List(Box::new(kind));
        let name = *self.rng.pick(&["contains", "intersects", "equivalent"]);
        let left = self.term(&kind, depth);
        format!("sets.{name}({left}, {})", self.term(&kind, depth))
    }

    fn dynamic_condition(&mut self, depth: usize) -> String {
        let Some(it) = self.selection(|it| *it == Type::Dynamic) else {
            return self.equality(depth);
        };
        let text = it.text;
        let number = self.rng.below(10);
        match self.rng.below(6) {
            0 => format!("type({text}) == string"),
            1 => format!("type({text}) == int ? {text} < {number} : true"),
            2 => format!("string({text}).startsWith('{number}')"),
            3 => format!("{text} == {number}"),
            4 => format!("{text} > {number}"),
            _ => format!("dyn({text}) != '{number}%'"),
        }
    }
}

/// Whether lists of values of a type are sortable.
fn is_ordered(kind: &Type) -> bool {
    !matches!(
        kind,
        Type::List(_) | Type::Map(_) | Type::Object | Type::Dynamic
    )
}
