//! The reason of a rejection: Kubernetes' `Status`.

use crate::json_text::JsonText;
use crate::object_identity::ObjectIdentity;
use lockkeeper_policies::finding::Finding;
use std::ops::Range;

/// The reason of a rejection.
#[derive(Debug)]
pub(crate) struct Status {
    message: JsonText,
    reason: &'static str,
    code: &'static str,
    details: Option<Details>,
}

#[derive(Debug)]
struct Details {
    name: JsonText,
    group: JsonText,
    kind: JsonText,
    causes: Vec<Cause>,
}

/// A cause. Its texts are parts of the message of the status, which are escaped once for both.
#[derive(Debug)]
struct Cause {
    reason: &'static str,
    message: Range<usize>,
    /// `None` without a field.
    field: Option<Range<usize>>,
}

/// Bytes for the parts of a status that have no text of their own.
const STATUS_OVERHEAD_BYTES: usize = 256;

/// Bytes for the keys of a cause.
const CAUSE_OVERHEAD_BYTES: usize = 72;

/// Capacity for the texts of a cause in the message, in bytes.
const CAUSE_CAPACITY_BYTES: usize = 256;

/// The path of a cause that has no field, as apimachinery prints it.
const NO_FIELD: &str = "<nil>";

const BAD_REQUEST: &str = "BadRequest";

impl Status {
    /// The request itself is invalid: 400.
    pub(crate) fn bad_request(message: &str) -> Self {
        Self {
            message: JsonText::new(message),
            reason: BAD_REQUEST,
            code: "400",
            details: None,
        }
    }

    /// The object is rejected: 422. kubectl prints the causes when one file is applied and the message when there are
    /// several, so both contain every finding.
    pub(crate) fn invalid(object: ObjectIdentity<'_>, denials: &[Finding], omitted: usize) -> Self {
        let (message, causes) = message(object, denials, omitted);
        Self {
            message,
            reason: "Invalid",
            code: "422",
            details: Some(Details {
                name: JsonText::new(object.name),
                group: JsonText::new(object.group),
                kind: JsonText::new(object.kind),
                causes,
            }),
        }
    }

    /// Whether the request itself is invalid.
    pub(crate) fn is_bad_request(&self) -> bool {
        self.reason == BAD_REQUEST
    }

    /// Estimates the length of the JSON, in bytes, to allocate once.
    pub(crate) fn estimated_length(&self) -> usize {
        let causes = self.details.iter().flat_map(|it| &it.causes);
        let causes = causes.map(|it| it.text_length().saturating_add(CAUSE_OVERHEAD_BYTES));
        let causes = causes.fold(STATUS_OVERHEAD_BYTES, usize::saturating_add);
        self.message.len().saturating_add(causes)
    }

    /// Appends the status as JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"status":"Failure","message":"#);
        self.message.append_to(out);
        out.extend_from_slice(br#","reason":""#);
        out.extend_from_slice(self.reason.as_bytes());
        out.extend_from_slice(br#"","code":"#);
        out.extend_from_slice(self.code.as_bytes());
        if let Some(details) = &self.details {
            out.extend_from_slice(br#","details":"#);
            details.write(&self.message, out);
        }
        out.push(b'}');
    }
}

impl Details {
    fn write(&self, message: &JsonText, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"name":"#);
        self.name.append_to(out);
        out.extend_from_slice(br#","group":"#);
        self.group.append_to(out);
        out.extend_from_slice(br#","kind":"#);
        self.kind.append_to(out);
        out.extend_from_slice(br#","causes":["#);
        for (position, cause) in self.causes.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            cause.write(message, out);
        }
        out.extend_from_slice(b"]}");
    }
}

impl Cause {
    /// The length of its texts as JSON, in bytes.
    fn text_length(&self) -> usize {
        let field = self.field.as_ref().map_or(NO_FIELD.len(), Range::len);
        field.saturating_add(self.message.len())
    }

    fn write(&self, message: &JsonText, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"reason":""#);
        out.extend_from_slice(self.reason.as_bytes());
        out.extend_from_slice(br#"","message":""#);
        out.extend_from_slice(message.part(&self.message).as_bytes());
        out.extend_from_slice(br#"","field":""#);
        let field = self.field.as_ref().map_or(NO_FIELD, |it| message.part(it));
        out.extend_from_slice(field.as_bytes());
        out.extend_from_slice(br#""}"#);
    }
}

/// The message with all causes, and the causes.
fn message(
    object: ObjectIdentity<'_>,
    denials: &[Finding],
    omitted: usize,
) -> (JsonText, Vec<Cause>) {
    let count = denials.len().saturating_add(usize::from(omitted > 0));
    let capacity = count.saturating_mul(CAUSE_CAPACITY_BYTES);
    let mut out = CauseList {
        message: JsonText::with_capacity(STATUS_OVERHEAD_BYTES.saturating_add(capacity)),
        causes: Vec::with_capacity(count),
        is_single: count == 1,
    };
    let kind = match object.group {
        "" => object.kind.to_owned(),
        group => format!("{}.{group}", object.kind),
    };
    let start = format!("{kind} {:?} is invalid: ", object.name);
    out.message.push(&start);
    if !out.is_single {
        let problems = denials.len().saturating_add(omitted);
        let bound = if omitted > 0 { "at least " } else { "" };
        out.message.push(&format!("{bound}{problems} problems:"));
    }
    let (mut field, mut text) = (String::new(), String::new());
    for finding in denials {
        field.clear();
        finding.field.push_to(&mut field);
        text.clear();
        // Writing to a string does not fail.
        let _ = finding.write_message(&mut text);
        out.push(finding.kind.reason(), &field, &text);
    }
    if omitted > 0 {
        let text = format!("and at least {omitted} more, not shown");
        out.push("FieldValueInvalid", NO_FIELD, &text);
    }
    (out.message, out.causes)
}

/// Causes and the message with them: one cause, or several with one per line, as kubectl prints them.
struct CauseList {
    message: JsonText,
    causes: Vec<Cause>,
    is_single: bool,
}

impl CauseList {
    fn push(&mut self, reason: &'static str, field: &str, text: &str) {
        if !self.is_single {
            self.message.push("\n* ");
        }
        let has_field = self.is_single || field != NO_FIELD;
        let field = has_field.then(|| {
            let field = self.message.push_part(field);
            self.message.push(": ");
            field
        });
        self.causes.push(Cause {
            reason,
            message: self.message.push_part(text),
            field,
        });
    }
}
