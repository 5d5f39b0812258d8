#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;

fn load(requests_max: usize, bodies_max_bytes: usize) -> Arc<Load> {
    Arc::new(Load::new(Bounds {
        requests_max,
        bodies_max_bytes,
        ..Bounds::default()
    }))
}

#[test]
fn places_are_taken_and_given_back() {
    let load = load(2, 0);
    let first = load.enter().unwrap();
    let _second = load.enter().unwrap();
    assert_eq!(load.enter().unwrap_err().limit, Limit::Requests(2));
    assert_eq!((load.in_flight(), load.shed()), (2, 1));
    drop(first);
    assert_eq!((load.in_flight(), load.shed()), (1, 1));
    assert!(load.enter().is_ok());
}

#[test]
fn a_limit_above_what_can_be_counted_is_no_defect() {
    let load = Load::new(Bounds {
        requests_max: usize::MAX,
        heavy_max: usize::MAX,
        ..Bounds::default()
    });
    assert!(load.enter().is_ok());
    assert_eq!((load.in_flight(), load.heavy_in_work()), (0, 0));
}

/// Pushes pieces into one body; whether the last one was taken, and what is held then.
#[track_caller]
fn check(pieces: &[&'static str], taken: bool, held: &str) {
    let load = load(1, 4);
    let mut body = Held::new(&load);
    let mut last = Ok(());
    for piece in pieces {
        last = body.push(Bytes::from_static(piece.as_bytes()));
    }
    assert_eq!(last.is_ok(), taken, "{pieces:?}");
    assert_eq!(body.bytes(), held.as_bytes());
    assert_eq!(load.held_bytes(), held.len());
    drop(body);
    assert_eq!(load.held_bytes(), 0);
}

#[test]
fn bodies_are_counted_while_they_are_held() {
    check(&[], true, "");
    check(&["abcd"], true, "abcd");
    check(&["", "ab", "", "c", "d"], true, "abcd");
    check(&["abcde"], false, "");
    check(&["abc", "de"], false, "abc");
    check(&["ab", "cd", "e"], false, "abcd");
}

#[test]
fn bodies_of_all_requests_count_together() {
    let load = load(1, 4);
    let (mut first, mut second) = (Held::new(&load), Held::new(&load));
    first.push(Bytes::from_static(b"abc")).unwrap();
    let refused = second.push(Bytes::from_static(b"de"));
    assert_eq!(refused.unwrap_err().limit, Limit::Bytes(4));
    assert_eq!(load.shed(), 1);
    drop(first);
    second.push(Bytes::from_static(b"de")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_line_in_a_second() {
    let interval = Bounds::default().log_interval;
    let throttle = Throttle::new(interval);
    assert!(throttle.is_due());
    assert!(!throttle.is_due());
    tokio::time::advance(interval.checked_sub(Duration::from_millis(1)).unwrap()).await;
    assert!(!throttle.is_due());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(throttle.is_due());
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_heavy_place_ends_with_the_deadline() {
    let load = Load::new(Bounds {
        heavy_max: 1,
        ..Bounds::default()
    });
    let in_a_second = || Instant::now() + Duration::from_secs(1);
    let taken = load.enter_heavy(in_a_second()).await.unwrap();
    assert_eq!(load.heavy_in_work(), 1);
    assert!(load.enter_heavy(in_a_second()).await.is_none());
    drop(taken);
    assert!(load.enter_heavy(Instant::now()).await.is_some());
}
