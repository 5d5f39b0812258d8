//! URLs.

use super::value::{Outcome, Value, error, no_overload};
use crate::crd::formats::uri::Uri;
use std::rc::Rc;

/// Calls a function; `None` if the name is none.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    let [value] = args else {
        return None;
    };
    Some(match (name, value) {
        ("url", Value::Text(text)) => match Uri::parse(text) {
            Some(uri) => Ok(Value::Url(Rc::new(uri))),
            None => error(format!(
                "URL parse error during conversion from string: parse {text:?}: invalid URI for request"
            )),
        },
        ("isURL", Value::Text(text)) => Ok(Value::Bool(Uri::parse(text).is_some())),
        ("url" | "isURL", _) => no_overload(),
        (_, Value::Url(uri)) => match name {
            "getScheme" => Ok(Value::text(uri.scheme.clone())),
            "getHost" => Ok(Value::text(uri.host.clone())),
            "getHostname" => Ok(Value::text(uri.host_and_port().0.to_owned())),
            "getPort" => Ok(Value::text(uri.host_and_port().1.to_owned())),
            "getEscapedPath" => Ok(Value::text(uri.path.clone())),
            "getQuery" => {
                let texts =
                    |items: Vec<String>| Value::list(items.into_iter().map(Value::text).collect());
                let entries = uri.query_values().into_iter();
                let entries = entries.map(|(key, values)| (Value::text(key), texts(values)));
                Ok(Value::Map(Rc::new(entries.collect())))
            }
            _ => return None,
        },
        _ => return None,
    })
}
