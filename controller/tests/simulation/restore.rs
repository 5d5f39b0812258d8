//! The storage of the API server is restored from a backup: versions go back, and objects are as they were.

use crate::fixture::Fixture;
use crate::job_lifecycle::{job, set_job_running};
use crate::jobs::JOB;
use crate::objects::NAMESPACE;
use lockkeeper_controller::ObjectKey;
use lockkeeper_preemption::requeue::RequeueSettings;

fn is_running(stage: &Fixture, name: &str) -> bool {
    stage.get(JOB, name)["spec"]["suspend"] == false
}

#[test]
fn restored_older_storage_is_observed_without_restart() {
    // Room for three Jobs of 2 CPUs.
    let mut stage = Fixture::new(RequeueSettings::default(), 6);
    stage.api.create(JOB, job("old", "mid")).unwrap();
    stage.advance(5_000);
    set_job_running(&mut stage, "old", 2);
    stage.advance(5_000);
    let backup = stage.api.clone();
    for name in ["lost-1", "lost-2", "lost-3"] {
        stage.api.create(JOB, job(name, "mid")).unwrap();
    }
    // Later versions of an object that the backup has, too.
    set_job_running(&mut stage, "old", 1);
    set_job_running(&mut stage, "old", 2);
    stage.advance(60_000);
    assert_eq!(stage.quota_usage(), ["main spot cpu 6 of 6"]);
    let newest = stage.api.version();

    stage.restore(backup);
    stage.advance(5_000);
    assert!(stage.api.version() < newest);
    assert_eq!(stage.quota_usage(), ["main spot cpu 2 of 6"]);
    // All versions are older than those that were seen before, and each write is still observed.
    for name in ["new-1", "new-2", "new-3"] {
        stage.api.create(JOB, job(name, "mid")).unwrap();
        stage.advance(5_000);
    }
    assert_eq!(stage.quota_usage(), ["main spot cpu 6 of 6"]);
    let started = ["old", "new-1", "new-2", "new-3"].map(|it| is_running(&stage, it));
    assert_eq!(started, [true, true, true, false]);
    let key = ObjectKey::new(NAMESPACE, "old");
    stage.api.delete(JOB, &key, None, false).unwrap();
    while stage.api.collect_garbage().is_some() {}
    stage.advance(60_000);
    assert!(is_running(&stage, "new-3"));
    assert_eq!(stage.quota_usage(), ["main spot cpu 6 of 6"]);
}
