//! The functions that macros over maps and lists expand to.

use super::equality::equals;
use super::lists;
use super::value::{Outcome, Value, error, no_overload};
use crate::crd::cel_macros::{MAP_INSERT, SORT_BY_KEYS};
use std::rc::Rc;

/// Calls a function; `None` if the name is none.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    Some(match (name, args) {
        (MAP_INSERT, [Value::Map(entries), key, value]) => {
            insert(entries, &[(key.clone(), value.clone())])
        }
        (MAP_INSERT, [Value::Map(entries), Value::Map(added)]) => insert(entries, added),
        (SORT_BY_KEYS, [items, keys]) => match (items.valid_items(), keys.valid_items()) {
            (Ok(items), Ok(keys)) => lists::sort_pairs(keys.into_iter().zip(items).collect()),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        },
        (MAP_INSERT | SORT_BY_KEYS, _) => no_overload(),
        _ => return None,
    })
}

fn insert<'a>(
    entries: &Rc<Vec<(Value<'a>, Value<'a>)>>,
    added: &[(Value<'a>, Value<'a>)],
) -> Outcome<'a> {
    let mut all = entries.as_ref().clone();
    for (key, value) in added {
        for (known, _) in &all {
            if equals(known, key)? {
                return error("insert failed: key already exists");
            }
        }
        all.push((key.clone(), value.clone()));
    }
    Ok(Value::Map(Rc::new(all)))
}
