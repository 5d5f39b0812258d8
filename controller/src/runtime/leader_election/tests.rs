#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use http::{Method, Request, Response};
use kube::client::Body;
use lockkeeper_kube_support::api_client::WatchAges;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

#[tokio::test(start_paused = true)]
async fn write_timeout_is_limited_by_the_lease() {
    let (now, max) = (Instant::now(), Duration::from_secs(15));
    let until = |seconds| {
        let until = now + Duration::from_secs(seconds);
        let (_sender, watch) = watch::channel(Some(Leadership { from: now, until }));
        write_timeout(Some(&watch), max, now)
    };
    assert_eq!(until(3), Duration::from_secs(3));
    assert_eq!(until(60), max);
    assert_eq!(until(0), Duration::ZERO);
    let (_sender, watch) = watch::channel(None);
    assert_eq!(write_timeout(Some(&watch), max, now), Duration::ZERO);
    assert_eq!(write_timeout(None, max, now), max);
}

/// An elector at an API server with a released Lease that answers writes with this status.
fn elector(code: u16) -> LeaderElector {
    let answer = move |request: Request<Body>| async move {
        let is_read = request.method() == Method::GET;
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "l", "resourceVersion": "1"},
            "spec": {"holderIdentity": ""},
        });
        let failed = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "reason": "Failed", "message": "failed", "metadata": {},
        });
        let is_good = is_read || code < 400;
        let body = if is_good { object } else { failed };
        let response = Response::builder().status(if is_good { 200 } else { code });
        let response = response.body(Body::from(body.to_string().into_bytes()));
        Ok::<_, Infallible>(response.unwrap())
    };
    let timing = TIMING;
    LeaderElector {
        leases: Api::namespaced(Client::new(tower::service_fn(answer), "n"), "n"),
        name: "l".to_owned(),
        timing,
        candidate: LeaseCandidate::new("a".to_owned(), timing),
        started: Instant::now(),
        held: None,
    }
}

#[tokio::test]
async fn lease_with_conflict_is_not_held() {
    let mut won = elector(200);
    let attempt = won.try_acquire_or_renew().await.unwrap();
    assert!(matches!(attempt, LeaseAttempt::Held { .. }));
    assert!(won.held.is_some());
    let mut lost = elector(409);
    let attempt = lost.try_acquire_or_renew().await.unwrap();
    assert!(matches!(attempt, LeaseAttempt::NotHeld));
    assert!(lost.held.is_none());
    let mut failed = elector(503);
    assert!(failed.try_acquire_or_renew().await.is_err());
}

const TIMING: LeaseTiming = LeaseTiming {
    duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

#[tokio::test(start_paused = true)]
async fn leadership_begins_and_ends() {
    let now = Instant::now();
    let [from, until] = [5, 10].map(|it| now + Duration::from_secs(it));
    let leadership = Leadership { from, until };
    let tick = Duration::from_nanos(1);
    for (at, is_leading, next) in [
        (now, false, Some(from)),
        (from - tick, false, Some(from)),
        (from, true, Some(until)),
        (until - tick, true, Some(until)),
        (until, false, None),
        (until + tick, false, None),
    ] {
        assert_eq!(leadership.contains(at), is_leading, "{at:?}");
        assert_eq!(leadership.next_change(at), next, "{at:?}");
    }
}

/// An API server with one Lease.
#[derive(Clone, Default)]
struct LeaseServer {
    state: Arc<Mutex<LeaseState>>,
    counts: Arc<watch::Sender<RequestCounts>>,
}

#[derive(Clone, Copy, Default)]
struct RequestCounts {
    answered: usize,
    written: usize,
}

#[derive(Default)]
struct LeaseState {
    lease: Option<Value>,
    /// The status of all responses, if it is not that of the request.
    code: Option<u16>,
}

impl LeaseServer {
    /// A server whose Lease has this holder.
    fn held_by(holder: &str) -> Self {
        let server = Self::default();
        server.give_to(holder);
        server
    }

    fn give_to(&self, holder: &str) {
        let mut state = self.state.lock().unwrap();
        state.code = None;
        state.lease = Some(json!({
            "metadata": {"name": "l", "resourceVersion": "1"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
        }));
    }

    fn set_code(&self, code: u16) {
        self.state.lock().unwrap().code = Some(code);
    }

    /// Waits for more requests. Fails after an hour of the paused clock.
    async fn wait_for_requests(&self, count: usize) {
        let mut counts = self.counts.subscribe();
        let before = counts.borrow().answered;
        let more = counts.wait_for(|it| it.answered >= before + count);
        timeout(Duration::from_hours(1), more)
            .await
            .unwrap()
            .unwrap();
    }

    /// Whether the Lease is written within this time.
    async fn is_written_within(&self, time: Duration) -> bool {
        let mut counts = self.counts.subscribe();
        let before = counts.borrow().written;
        timeout(time, counts.wait_for(|it| it.written > before))
            .await
            .is_ok()
    }

    fn holder(&self) -> String {
        let state = self.state.lock().unwrap();
        let holder = &state.lease.as_ref().unwrap()["spec"]["holderIdentity"];
        holder.as_str().unwrap().to_owned()
    }

    fn answer(&self, method: &Method, body: &[u8]) -> (u16, Value) {
        let mut state = self.state.lock().unwrap();
        let is_write = state.code.is_none() && method != Method::GET;
        self.counts.send_modify(|it| {
            it.answered += 1;
            it.written += usize::from(is_write);
        });
        if is_write {
            state.lease = Some(serde_json::from_slice(body).unwrap());
        }
        let code = if state.lease.is_some() { 200 } else { 404 };
        let code = state.code.unwrap_or(code);
        let reason = if code == 404 { "NotFound" } else { "Failed" };
        let failure = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "code": code, "reason": reason, "message": "failed",
        });
        let lease = state.lease.clone().filter(|_| code == 200);
        (code, lease.unwrap_or(failure))
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let answer = move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (code, body) = server.answer(&head.method, &body);
                let body = Body::from(body.to_string().into_bytes());
                Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        };
        Client::new(tower::service_fn(answer), "n")
    }

    /// Starts the election of the candidate `a`.
    fn elect(&self, gate: LeadershipGate) -> (LeadershipWatch, JoinHandle<()>) {
        let (sender, lead) = watch::channel(None);
        let task = tokio::spawn(elect(self.client(), settings(), gate, sender));
        (lead, task)
    }
}

fn settings() -> LeaseSettings {
    LeaseSettings {
        namespace: "n".to_owned(),
        name: "l".to_owned(),
        identity: "a".to_owned(),
        timing: TIMING,
    }
}

/// Waits for a leadership, or for its end. Fails after an hour of the paused clock.
async fn wait_for(lead: &mut LeadershipWatch, is_leading: bool) -> Option<Leadership> {
    let found = lead.wait_for(|it| it.is_some() == is_leading);
    *timeout(Duration::from_hours(1), found)
        .await
        .unwrap()
        .unwrap()
}

fn open_gate() -> LeadershipGate {
    LeadershipGate::new(WatchAges::default(), TIMING.duration * 2)
}

#[tokio::test(start_paused = true)]
async fn candidate_leads_at_once_and_renews() {
    for server in [LeaseServer::default(), LeaseServer::held_by("")] {
        let (mut lead, task) = server.elect(open_gate());
        let begun = Instant::now();
        let first = wait_for(&mut lead, true).await.unwrap();
        assert_eq!(first.from, begun);
        assert_eq!(first.until, begun + TIMING.renew_deadline);
        assert_eq!(server.holder(), "a");
        lead.changed().await.unwrap();
        let next = lead.borrow().unwrap();
        assert_eq!(next.from, begun);
        assert_eq!(next.until, first.until + TIMING.retry_period);
        // The election ends when no receiver is left.
        drop(lead);
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn candidate_waits_for_writes_of_holder_that_has_not_released() {
    let server = LeaseServer::held_by("b");
    let (mut lead, _task) = server.elect(open_gate());
    let begun = Instant::now();
    let first = wait_for(&mut lead, true).await.unwrap();
    let taken = begun + Duration::from_secs(16);
    assert_eq!(first.until, taken + TIMING.renew_deadline);
    assert_eq!(first.from, taken + Duration::from_secs(7));
    // The wait is not repeated by renewals.
    lead.changed().await.unwrap();
    assert_eq!(lead.borrow().unwrap().from, first.from);
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_does_not_extend_leadership() {
    let server = LeaseServer::default();
    let (mut lead, _task) = server.elect(open_gate());
    let first = wait_for(&mut lead, true).await;
    server.set_code(503);
    server.wait_for_requests(10).await;
    assert!(Instant::now() > first.unwrap().until);
    assert_eq!(*lead.borrow(), first);
    server.give_to("b");
    wait_for(&mut lead, false).await;
}

#[tokio::test(start_paused = true)]
async fn candidate_with_closed_gate_does_not_renew() {
    let server = LeaseServer::default();
    let gate = open_gate();
    let (mut lead, _task) = server.elect(gate.clone());
    wait_for(&mut lead, true).await;
    let fail = |name: &str| {
        let object = crate::ObjectRef::Cohort(name.to_owned());
        gate.record_write(&object, &crate::WriteResult::Failed(String::new()));
    };
    fail("a");
    tokio::time::advance(Duration::from_mins(1)).await;
    fail("b");
    assert!(!gate.is_open());
    wait_for(&mut lead, false).await;
    assert!(!server.is_written_within(TIMING.duration).await);
}

#[tokio::test(start_paused = true)]
async fn only_own_lease_is_released() {
    for (holder, after) in [("a", ""), ("b", "b")] {
        let server = LeaseServer::held_by(holder);
        let elector = LeaderElector {
            leases: Api::namespaced(server.client(), "n"),
            ..elector(200)
        };
        elector.release().await;
        assert_eq!(server.holder(), after);
    }
}

#[tokio::test]
async fn missing_right_to_read_lease_is_an_error() {
    for (code, is_error) in [(403, true), (404, false), (200, false), (500, false)] {
        let server = LeaseServer::held_by("");
        server.set_code(code);
        let checked = check_access(&server.client(), &settings()).await;
        assert_eq!(checked.is_err(), is_error, "{code}");
    }
}
