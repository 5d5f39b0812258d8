//! The pod sets of a job: each item of a declared list or map, with its values.

use crate::declared_kind::DeclaredKind;
use crate::expressions::{ITEM, KEY, SELF};
use crate::job_path::JobPath;
use crate::parts::{PodCount, PodSetName, PodSets};
use crate::read_error::ReadError;
use crate::template_place::{TemplatePlace, template_of_fields};
use lockkeeper_api::names::is_dns_label;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_crd_schema::crd::{ObjectExpression, ObjectScope};
use serde_json::{Map, Value};

/// The most pod sets of a workload.
const POD_SETS_MAX: usize = 8;

/// The most characters of a name in an error.
const SHOWN_LENGTH_MAX: usize = 63;

/// The pods of one template of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredPodSet {
    /// The name.
    pub name: String,
    /// The number of pods, 0 or more.
    pub count: i32,
    /// The fewest pods with which the job may start, from 1 to below `count`; `None` if it needs all.
    pub minimum: Option<i32>,
    /// The number of pods that have succeeded and will not run again, at most `count`.
    pub reclaimable: i32,
    /// The pod template as the user wrote it.
    pub template: Value,
}

/// The problem of a number of pods.
const COUNT_PROBLEM: &str = "must be an integer from 0 to 2147483647";

/// An item of a list or map, or the job itself.
struct Item<'a> {
    /// An index, a key, or null.
    place: Value,
    key: Value,
    value: &'a Value,
}

/// The pod sets of a job, with the places of their templates.
///
/// # Errors
///
/// A [`ReadError`] if a value is missing or has the wrong type, if two pod sets have one name, or if there are none or too many.
pub(crate) fn read_pod_sets(
    kind: &DeclaredKind,
    object: &Value,
) -> Result<Vec<(DeclaredPodSet, TemplatePlace)>, ReadError> {
    let mut out: Vec<(DeclaredPodSet, TemplatePlace)> = Vec::new();
    for (source, pod_sets) in kind.pod_sets.iter().enumerate() {
        let reader = Reader {
            source,
            pod_sets,
            object,
        };
        for item in items(pod_sets, object) {
            let Some((found, requests)) = reader.read(&item)? else {
                continue;
            };
            let place = TemplatePlace {
                source,
                item: item.place,
                requests,
            };
            if out.iter().any(|(it, _)| it.name == found.name) {
                let problem = format!("two pod sets have the name {:?}", found.name);
                return Err(reader.error("name", problem));
            }
            out.push((found, place));
            if out.len() > POD_SETS_MAX {
                let problem = format!("the job has more than {POD_SETS_MAX} pod sets");
                return Err(reader.error("forEach", problem));
            }
        }
    }
    if out.is_empty() {
        return Err(ReadError {
            field: "spec.podSets".to_owned(),
            problem: "the job has none of the declared pod templates".to_owned(),
        });
    }
    Ok(out)
}

/// The items of a declared list or map, those of a map by key; the job itself without `forEach`.
fn items<'a>(pod_sets: &PodSets, object: &'a Value) -> Vec<Item<'a>> {
    let Some(path) = &pod_sets.for_each else {
        return vec![Item {
            place: Value::Null,
            key: Value::Null,
            value: object,
        }];
    };
    match path.get(object) {
        Some(Value::Array(items)) => {
            let items = items.iter().enumerate();
            let item = |(index, value)| Item {
                place: Value::from(index),
                key: Value::from(index),
                value,
            };
            items.map(item).collect()
        }
        Some(Value::Object(fields)) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|it| it.0);
            let item = |(key, value): (&String, _)| Item {
                place: Value::from(key.as_str()),
                key: Value::from(key.as_str()),
                value,
            };
            fields.into_iter().map(item).collect()
        }
        _ => Vec::new(),
    }
}

/// A pod set, and the requests of its pods if they have no template.
type FoundPodSet = (DeclaredPodSet, Option<Map<String, Value>>);

struct Reader<'a> {
    source: usize,
    pod_sets: &'a PodSets,
    object: &'a Value,
}

impl Reader<'_> {
    fn error(&self, field: &str, problem: impl Into<String>) -> ReadError {
        ReadError {
            field: format!("spec.podSets[{}].{field}", self.source),
            problem: problem.into(),
        }
    }

    /// The pod set of an item, with the requests of pods without a template; `None` if the job does not have it.
    fn read(&self, item: &Item<'_>) -> Result<Option<FoundPodSet>, ReadError> {
        let pod_sets = self.pod_sets;
        let mut values = Values {
            reader: self,
            item,
            scope: None,
        };
        let pods = pod_sets.pods.path.get(item.value);
        if let Some(condition) = &pod_sets.condition {
            match values.evaluate("condition", condition)? {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(None),
                _ => return Err(self.error("condition", "must be true or false")),
            }
        } else if pods.is_none() {
            return Ok(None);
        }
        let Some(pods) = pods else {
            let problem = format!("the job has no {}", pod_sets.pods.path);
            return Err(self.error("condition", problem));
        };
        let spec = match pod_sets.pods.requests {
            None => pods.get("spec"),
            Some(_) => Some(pods),
        };
        if !pods.is_object() || !spec.is_some_and(Value::is_object) {
            let problem = format!(
                "{} is no object with the fields of pods",
                pod_sets.pods.path
            );
            return Err(self.error("template", problem));
        }
        let name = self.name(&mut values)?;
        let count = match &pod_sets.count {
            PodCount::One => 1,
            PodCount::Expression(of) => values.count("count", of)?,
            PodCount::Field(path) => self.count_field(path, item.value)?,
        };
        let minimum = match &pod_sets.minimum {
            None => None,
            Some(of) => Some(values.count("minimum", of)?),
        };
        let reclaimable = match &pod_sets.reclaimable {
            None => 0,
            Some(of) => values.count("reclaimable", of)?.min(count),
        };
        let requests = values.requests()?;
        let template = match &requests {
            None => pods.clone(),
            Some(requests) => template_of_fields(pods, requests),
        };
        let found = DeclaredPodSet {
            name,
            count,
            minimum: minimum.filter(|it| (1..count).contains(it)),
            reclaimable,
            template,
        };
        Ok(Some((found, requests)))
    }

    fn name(&self, values: &mut Values<'_, '_>) -> Result<String, ReadError> {
        match &self.pod_sets.name {
            PodSetName::Fixed(name) => Ok(name.clone()),
            PodSetName::Expression(of) => {
                let name = values.evaluate("nameExpression", of)?;
                self.pod_set_name("nameExpression", &name)
            }
            PodSetName::OfItem if values.item.place.is_string() => {
                self.pod_set_name("forEach", &values.item.key)
            }
            PodSetName::OfItem => {
                let name = values.item.value.get("name").unwrap_or(&Value::Null);
                self.pod_set_name("forEach", name)
            }
        }
    }

    /// The number in a field of the item, which must be writable.
    fn count_field(&self, path: &JobPath, item: &Value) -> Result<i32, ReadError> {
        let field = "countField";
        if !path.is_writable(item) {
            return Err(self.error(field, format!("there is no object with {path}")));
        }
        path.get(item).map_or(Ok(1), |it| {
            pod_count(it).ok_or_else(|| self.error(field, format!("{path} {COUNT_PROBLEM}")))
        })
    }

    /// The name of a pod set, in lower case.
    fn pod_set_name(&self, field: &str, name: &Value) -> Result<String, ReadError> {
        let Some(name) = name.as_str() else {
            return Err(self.error(field, "the name of the pod set is no text"));
        };
        let name = name.to_lowercase();
        if is_dns_label(&name) {
            return Ok(name);
        }
        let shown: String = name.chars().take(SHOWN_LENGTH_MAX).collect();
        let problem = format!(
            "{shown:?} is no name of a pod set: it may have lower-case letters, digits and hyphens"
        );
        Err(self.error(field, problem))
    }
}

fn pod_count(value: &Value) -> Option<i32> {
    let count = value.as_i64().and_then(|it| i32::try_from(it).ok());
    count.filter(|it| *it >= 0)
}

/// The values of the expressions of an item. The variables are read when the first expression needs them.
struct Values<'a, 'b> {
    reader: &'b Reader<'a>,
    item: &'b Item<'a>,
    scope: Option<ObjectScope<'b>>,
}

impl Values<'_, '_> {
    fn evaluate(&mut self, field: &str, of: &ObjectExpression) -> Result<Value, ReadError> {
        let (reader, item) = (self.reader, self.item);
        let scope = self.scope.get_or_insert_with(|| {
            let mut scope = ObjectScope::default();
            if reader.reads(SELF) {
                scope.set(SELF, reader.object);
            }
            if !item.place.is_null() {
                scope.set(ITEM, item.value);
                scope.set(KEY, &item.key);
            }
            scope
        });
        let value = scope.evaluate(of);
        value.map_err(|it| reader.error(field, it.to_string()))
    }

    fn count(&mut self, field: &str, of: &ObjectExpression) -> Result<i32, ReadError> {
        let value = self.evaluate(field, of)?;
        pod_count(&value).ok_or_else(|| self.reader.error(field, COUNT_PROBLEM))
    }

    /// The requests of a pod; `None` if it has a template.
    fn requests(&mut self) -> Result<Option<Map<String, Value>>, ReadError> {
        let Some(requests) = &self.reader.pod_sets.pods.requests else {
            return Ok(None);
        };
        let mut out = Map::new();
        for (resource, of) in requests {
            let field = format!("requests[{resource}]");
            let value = self.evaluate(&field, of)?;
            let quantity = match &value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => String::new(),
            };
            if quantity.parse::<Quantity>().is_err() {
                let problem = format!("{quantity:?} is no quantity, such as 500m or 2Gi");
                return Err(self.reader.error(&field, problem));
            }
            out.insert(resource.clone(), Value::String(quantity));
        }
        Ok(Some(out))
    }
}

impl Reader<'_> {
    /// Whether one of the expressions reads a variable.
    fn reads(&self, variable: &str) -> bool {
        let of = self.pod_sets;
        let name = match &of.name {
            PodSetName::Expression(name) => Some(name),
            PodSetName::Fixed(_) | PodSetName::OfItem => None,
        };
        let all = [&of.condition, &of.minimum, &of.reclaimable];
        let all = all.into_iter().filter_map(Option::as_ref);
        let all = all.chain(of.count.expression()).chain(name);
        let requests = of.pods.requests.iter().flatten().map(|it| &it.1);
        all.chain(requests).any(|it| it.reads(variable))
    }
}
