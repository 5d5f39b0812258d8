#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;

fn load(requests_max: usize, bodies_max_bytes: usize) -> Arc<LoadShedder> {
    Arc::new(LoadShedder::new(LoadLimits {
        requests_max,
        bodies_max_bytes,
        ..LoadLimits::default()
    }))
}

#[test]
fn acquire_at_limit_is_rejected_until_released() {
    let load = load(2, 0);
    let first = load.acquire(None).unwrap();
    let _second = load.acquire(None).unwrap();
    assert_eq!(
        load.acquire(None).unwrap_err().limit,
        LoadLimit::Requests(2)
    );
    assert_eq!((load.in_flight(), load.shed()), (2, 1));
    drop(first);
    assert_eq!((load.in_flight(), load.shed()), (1, 1));
    assert!(load.acquire(None).is_ok());
}

#[test]
fn limit_above_semaphore_max_is_clamped() {
    let load = LoadShedder::new(LoadLimits {
        requests_max: usize::MAX,
        heavy_max: usize::MAX,
        ..LoadLimits::default()
    });
    assert!(load.acquire(None).is_ok());
    assert_eq!((load.in_flight(), load.large_in_flight()), (0, 0));
}

/// Pushes pieces into one body; returns true if the last one was accepted, and the buffered bytes.
#[track_caller]
fn check(pieces: &[&'static str], taken: bool, held: &str) {
    let load = load(1, 4);
    let mut body = BufferedBody::new(&load, None);
    let mut last = Ok(());
    for piece in pieces {
        last = body.push(Bytes::from_static(piece.as_bytes()));
    }
    assert_eq!(last.is_ok(), taken, "{pieces:?}");
    assert_eq!(body.bytes(), held.as_bytes());
    assert_eq!(load.buffered_bytes(), held.len());
    drop(body);
    assert_eq!(load.buffered_bytes(), 0);
}

#[test]
fn buffered_body_counts_bytes_until_dropped() {
    check(&[], true, "");
    check(&["abcd"], true, "abcd");
    check(&["", "ab", "", "c", "d"], true, "abcd");
    check(&["abcde"], false, "");
    check(&["abc", "de"], false, "abc");
    check(&["ab", "cd", "e"], false, "abcd");
}

#[test]
fn buffered_bodies_share_one_limit() {
    let load = load(1, 4);
    let (mut first, mut second) = (
        BufferedBody::new(&load, None),
        BufferedBody::new(&load, None),
    );
    first.push(Bytes::from_static(b"abc")).unwrap();
    let result = second.push(Bytes::from_static(b"de"));
    assert_eq!(result.unwrap_err().limit, LoadLimit::Bytes(4));
    assert_eq!(load.shed(), 1);
    drop(first);
    second.push(Bytes::from_static(b"de")).unwrap();
}

#[test]
fn one_peer_takes_no_more_than_its_share() {
    let load = Arc::new(LoadShedder::new(LoadLimits {
        requests_max: 3,
        requests_per_peer_max: 2,
        bodies_max_bytes: 8,
        bodies_per_peer_max_bytes: 4,
        ..LoadLimits::default()
    }));
    let [a, b] = ["10.0.0.1", "10.0.0.2"].map(|it| Some(it.parse().unwrap()));
    let (_first, _second) = (load.acquire(a).unwrap(), load.acquire(a).unwrap());
    let third = load.acquire(a).unwrap_err();
    assert_eq!(third.limit, LoadLimit::PeerRequests(2));
    assert!(load.acquire(b).is_ok());
    assert_eq!(load.in_flight(), 2);
    let (mut slow, mut next) = (BufferedBody::new(&load, a), BufferedBody::new(&load, a));
    slow.push(Bytes::from_static(b"abc")).unwrap();
    let over = next.push(Bytes::from_static(b"de")).unwrap_err();
    assert_eq!(over.limit, LoadLimit::PeerBytes(4));
    let mut other = BufferedBody::new(&load, b);
    other.push(Bytes::from_static(b"fghi")).unwrap();
    drop(slow);
    next.push(Bytes::from_static(b"de")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn throttle_allows_one_line_per_interval() {
    let interval = LoadLimits::default().log_interval;
    let throttle = LogThrottle::new(interval);
    assert!(throttle.is_due());
    assert!(!throttle.is_due());
    tokio::time::advance(interval.checked_sub(Duration::from_millis(1)).unwrap()).await;
    assert!(!throttle.is_due());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(throttle.is_due());
}

#[tokio::test(start_paused = true)]
async fn throttle_with_burst_allows_lines_at_once_again_after_pause() {
    let interval = Duration::from_secs(1);
    let throttle = LogThrottle::with_burst(interval, 3);
    let due = || (0..10).filter(|_| throttle.is_due()).count();
    assert_eq!(due(), 3);
    tokio::time::advance(interval).await;
    assert_eq!(due(), 1);
    tokio::time::advance(interval * 2).await;
    assert_eq!(due(), 2);
    tokio::time::advance(interval * 100).await;
    assert_eq!(due(), 3);
}

#[tokio::test(start_paused = true)]
async fn acquire_large_gives_up_at_the_deadline() {
    let load = LoadShedder::new(LoadLimits {
        heavy_max: 1,
        ..LoadLimits::default()
    });
    let in_a_second = || Instant::now() + Duration::from_secs(1);
    let taken = load.acquire_large(in_a_second()).await.unwrap();
    assert_eq!(load.large_in_flight(), 1);
    assert!(load.acquire_large(in_a_second()).await.is_none());
    drop(taken);
    assert!(load.acquire_large(Instant::now()).await.is_some());
}
