//! The reason of a rejection: Kubernetes' `Status`.

use crate::json_text::JsonText;
use crate::object_identity::ObjectIdentity;
use lockkeeper_policies::finding::Finding;

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

#[derive(Debug)]
struct Cause {
    reason: &'static str,
    message: JsonText,
    field: JsonText,
}

/// Bytes for the parts of a status that have no text of their own.
const STATUS_OVERHEAD_BYTES: usize = 256;

/// Bytes for the keys of a cause.
const CAUSE_OVERHEAD_BYTES: usize = 72;

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
        let mut buffer = String::new();
        let causes = denials.iter();
        let causes = causes.map(|finding| Cause::from_finding(finding, &mut buffer));
        let mut causes: Vec<Cause> = causes.collect();
        if omitted > 0 {
            causes.push(Cause {
                reason: "FieldValueInvalid",
                message: JsonText::new(&format!("and at least {omitted} more, not shown")),
                field: JsonText::new(NO_FIELD),
            });
        }
        Self {
            message: message(object, &causes, denials.len(), omitted),
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
            details.write(out);
        }
        out.push(b'}');
    }
}

impl Details {
    fn write(&self, out: &mut Vec<u8>) {
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
            cause.write(out);
        }
        out.extend_from_slice(b"]}");
    }
}

impl Cause {
    /// The buffer is for the texts before they are escaped: escaping them whole is faster than part by part.
    fn from_finding(finding: &Finding, buffer: &mut String) -> Self {
        buffer.clear();
        // Writing to a string does not fail.
        let _ = finding.write_message(buffer);
        let message = JsonText::new(buffer);
        buffer.clear();
        finding.field.push_to(buffer);
        Self {
            reason: finding.kind.reason(),
            message,
            field: JsonText::new(buffer),
        }
    }

    /// The length of its texts as JSON, in bytes.
    fn text_length(&self) -> usize {
        self.field.len().saturating_add(self.message.len())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"reason":""#);
        out.extend_from_slice(self.reason.as_bytes());
        out.extend_from_slice(br#"","message":"#);
        self.message.append_to(out);
        out.extend_from_slice(br#","field":"#);
        self.field.append_to(out);
        out.push(b'}');
    }
}

/// The message with all causes.
fn message(object: ObjectIdentity<'_>, causes: &[Cause], shown: usize, omitted: usize) -> JsonText {
    let lengths = causes.iter().map(Cause::text_length);
    let length = lengths.fold(STATUS_OVERHEAD_BYTES, usize::saturating_add);
    let mut out = JsonText::with_capacity(length);
    let kind = match object.group {
        "" => object.kind.to_owned(),
        group => format!("{}.{group}", object.kind),
    };
    out.push(&format!("{kind} {:?} is invalid: ", object.name));
    match causes {
        [only] => {
            out.push_json(&only.field);
            out.push(": ");
            out.push_json(&only.message);
        }
        several => push_causes(&mut out, several, shown, omitted),
    }
    out
}

/// Appends all causes, one per line, as kubectl prints them.
fn push_causes(out: &mut JsonText, causes: &[Cause], shown: usize, omitted: usize) {
    let count = shown.saturating_add(omitted);
    let bound = if omitted > 0 { "at least " } else { "" };
    out.push(&format!("{bound}{count} problems:"));
    let no_field = JsonText::new(NO_FIELD);
    for cause in causes {
        out.push("\n* ");
        if cause.field != no_field {
            out.push_json(&cause.field);
            out.push(": ");
        }
        out.push_json(&cause.message);
    }
}
