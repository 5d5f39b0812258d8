//! The message of the conditions of a preempted workload, of lockkeeper or of Kueue.

/// The values in the message of the condition `Preempted`. Each is `None` if the message does not have it.
///
/// Source: Kueue `pkg/scheduler/preemption`, `preemptionMessage`; earlier versions have fewer values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionMessage<'a> {
    /// The uid of the Workload of the preemptor.
    pub uid: Option<&'a str>,
    /// The uid of the job of the preemptor.
    pub job_uid: Option<&'a str>,
    /// The preemptor as `namespace/name`, if it is in the namespace of its victim.
    pub preemptor: Option<&'a str>,
    /// The path of the ClusterQueue of the preemptor, as `/root/cohort/queue`.
    pub preemptor_path: Option<&'a str>,
    /// The path of the ClusterQueue of its victim.
    pub preemptee_path: Option<&'a str>,
}

/// How the message starts, before the uid of the preemptor.
pub(crate) const PREFIX: &str = "Preempted to accommodate a workload (UID: ";

/// A uid that is not known.
pub(crate) const UNKNOWN_UID: &str = "UNKNOWN";

impl<'a> PreemptionMessage<'a> {
    /// Parses a message; unknown parts are ignored. The message of another component has no values.
    #[must_use]
    pub fn parse(message: &'a str) -> Self {
        let mut parts = message.split("; ");
        let Some(first) = parts.next().and_then(|it| it.strip_prefix(PREFIX)) else {
            return Self::default();
        };
        let job_uid = first.split_once(" JobUID: ");
        let mut found = Self {
            uid: known_uid(first),
            job_uid: job_uid.and_then(|(_, rest)| known_uid(rest)),
            ..Self::default()
        };
        for part in parts {
            match part.split_once(": ") {
                Some(("preemptor", name)) if name.contains('/') => found.preemptor = Some(name),
                Some(("preemptor path", path)) => found.preemptor_path = Some(path),
                Some(("preemptee path", path)) => found.preemptee_path = Some(path),
                _ => {}
            }
        }
        found
    }
}

/// The uid at the start of a text.
fn known_uid(text: &str) -> Option<&str> {
    let (uid, _) = text.split_once([',', ')'])?;
    (!uid.is_empty() && uid != UNKNOWN_UID).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::PreemptionMessage;

    #[test]
    fn messages_of_all_versions_are_parsed() {
        let full = PreemptionMessage {
            uid: Some("u"),
            job_uid: Some("j"),
            preemptor: None,
            preemptor_path: Some("/root/a"),
            preemptee_path: Some("/root/b"),
        };
        for (message, expected) in [
            (
                "Preempted to accommodate a workload (UID: u, JobUID: j) due to reclamation within the cohort; preemptor path: /root/a; preemptee path: /root/b",
                full,
            ),
            (
                "Preempted to accommodate a workload (UID: u, JobUID: j) due to prioritization in the ClusterQueue; preemptor: ns/p; preemptor path: /root/a; preemptee path: /root/b",
                PreemptionMessage {
                    preemptor: Some("ns/p"),
                    ..full
                },
            ),
            // The uid in place of a name of another namespace.
            (
                "Preempted to accommodate a workload (UID: u, JobUID: j) due to x; preemptor: u; preemptor path: /root/a; preemptee path: /root/b",
                full,
            ),
            (
                "Preempted to accommodate a workload (UID: u) due to prioritization in the ClusterQueue",
                PreemptionMessage {
                    uid: Some("u"),
                    ..PreemptionMessage::default()
                },
            ),
            (
                "Preempted to accommodate a workload (UID: UNKNOWN, JobUID: UNKNOWN) due to x",
                PreemptionMessage::default(),
            ),
            (
                "Preempted to accommodate a workload (UID: u",
                PreemptionMessage::default(),
            ),
            (
                "Evicted by an operator (UID: u, JobUID: j); preemptor path: /a",
                PreemptionMessage::default(),
            ),
            ("", PreemptionMessage::default()),
        ] {
            assert_eq!(PreemptionMessage::parse(message), expected, "{message}");
        }
    }
}
