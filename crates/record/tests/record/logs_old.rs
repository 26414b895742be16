//! Files of a version that did not name the schemas of its logs.

#![allow(clippy::unwrap_used)]

use nearmiss_record::logs::{
    Address, IoTotals, LockTotals, LockWait, NamedSample, PollCall, PollTotals, Row, TaskTime,
};
use nearmiss_record::observation::Observation;
use std::path::Path;

fn old() -> Observation {
    Observation::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/observed-without-versions")).unwrap()
}

fn rows<R: Row>(observation: &Observation) -> Vec<R> {
    observation.log::<R>().unwrap().unwrap().map(Result::unwrap).collect()
}

#[test]
fn an_old_run_is_opened() {
    let old = old();
    assert_eq!((old.manifest().recorder.as_str(), old.manifest().cpus), ("observe", 2));
    assert_eq!(old.observed().polls[0].calls, 10);
}

#[test]
fn tables_with_the_columns_of_today_are_read() {
    let old = old();
    let observed = old.observed();
    assert_eq!(rows::<PollTotals>(&old), observed.polls.iter().map(PollTotals::from).collect::<Vec<_>>());
    assert_eq!(rows::<LockTotals>(&old), observed.locks.iter().map(LockTotals::from).collect::<Vec<_>>());
    assert_eq!(rows::<IoTotals>(&old), observed.io.iter().map(IoTotals::from).collect::<Vec<_>>());
    assert_eq!(rows::<TaskTime>(&old), observed.tasks.iter().flat_map(TaskTime::rows).collect::<Vec<_>>());
    let profile = observed.profile.as_ref().unwrap();
    assert_eq!(rows::<NamedSample>(&old), NamedSample::rows(profile).collect::<Vec<_>>());
}

#[test]
fn a_log_of_lock_waits_is_read() {
    let old = old();
    let waits = rows::<LockWait>(&old);
    let totals = &old.observed().locks;
    assert_eq!(waits.len() as u64, totals.iter().map(|lock| lock.count).sum::<u64>());
    assert_eq!(waits.iter().map(|w| w.wait_ns).sum::<u64>(), totals.iter().map(|lock| lock.total_ns).sum::<u64>());
    assert_eq!((waits[0].name.as_str(), waits[0].address), ("mutex", Address(totals[0].address)));
}

#[test]
fn a_log_of_polls_without_timeouts_is_refused_by_name() {
    let refused = old().log::<PollCall>().map(drop).unwrap_err().to_string();
    let why = "polls-log.parquet: names no schema and has no column `timeout_ns`, so an earlier nearmiss wrote it; this one \
               reads `nearmiss/polls-log/1`: observe again";
    assert!(refused.ends_with(why), "{refused}");
}

#[test]
fn a_log_that_an_observation_did_not_write_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let refused = Observation::open(directory.path()).unwrap_err().to_string();
    assert!(refused.contains("no run here"), "{refused}");
    for file in ["manifest.json", "observe.json"] {
        if file == "observe.json" {
            let refused = Observation::open(directory.path()).unwrap_err().to_string();
            assert!(
                refused.ends_with(
                    "this run is no observation (no observe.json); record one with `nearmiss observe -- CMD`"
                )
            );
        }
        std::fs::copy(old().run().file(file), directory.path().join(file)).unwrap();
    }
    assert!(Observation::open(directory.path()).unwrap().log::<PollCall>().unwrap().is_none());
}
