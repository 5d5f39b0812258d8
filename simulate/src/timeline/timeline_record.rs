//! A timeline as JSON, with the utilization of each quota.

use super::job_trace::JobTrace;
use super::result::{QuotaUsage, Timeline};
use super::utilization::utilization;
use serde::{Serialize, Serializer};

/// A timeline and its trace, for serialization without a copy.
#[derive(Clone, Copy, Debug)]
pub struct TimelineRecord<'a> {
    /// The trace.
    pub trace: &'a JobTrace,
    /// Its timeline.
    pub timeline: &'a Timeline,
}

#[derive(Serialize)]
struct UsageRow<'a> {
    #[serde(flatten)]
    usage: &'a QuotaUsage,
    utilization: Option<f64>,
}

impl Serialize for TimelineRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usage = self.timeline.usage.iter().map(|usage| UsageRow {
            usage,
            utilization: utilization(self.trace, self.timeline, usage),
        });
        let usage: Vec<UsageRow<'_>> = usage.collect();
        self.timeline.serialize_with_usage(serializer, &usage)
    }
}
