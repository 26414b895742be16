//! A log of waits is read once, however many of its threads are rehearsed and however often, and reports its progress.
#![allow(clippy::unwrap_used)]

use nearmiss_analysis::{Case, RehearsalRequest, Value};
use nearmiss_record::logs::{PollCall, write};
use nearmiss_record::observation::Observation;
use nearmiss_record::observed::{self, Observed, Poll};
use nearmiss_record::run::{self, Manifest, RunDir};
use nearmiss_remedies::pace::REMEDY;
use std::path::Path;
use std::sync::{Arc, Mutex};

const CALLS: u64 = 5_000;

/// Two threads that wait once an event, each 100 µs.
fn run(place: &Path) -> RunDir {
    let run = RunDir::create(place, "observed").unwrap();
    let totals = |thread: i32| Poll {
        call: "epoll_wait".into(),
        process: 7,
        thread,
        name: format!("server {thread}"),
        calls: CALLS,
        events: CALLS,
        on_cpu_ns: 2_000 * CALLS,
        ..Poll::default()
    };
    let polls = vec![totals(7), totals(8)];
    let (duration_ns, cpu_ns) = (100_000 * CALLS, 20_000 * CALLS);
    let observed = Observed { schema: observed::SCHEMA.into(), duration_ns, cpu_ns, polls, ..Observed::default() };
    run.write_json(observed::FILE, &observed).unwrap();
    run.write_json(run::MANIFEST, &Manifest { schema: run::SCHEMA.into(), ..Manifest::default() }).unwrap();
    let call = |n: u64| PollCall {
        enter_ns: 1_000_000 + n / 2 * 100_000,
        exit_ns: 1_090_000 + n / 2 * 100_000,
        blocked_ns: 88_000,
        on_cpu_ns: 2_000,
        call: "epoll_wait".into(),
        events: 1,
        process: 7,
        thread: 7 + (n % 2) as u32,
        ..PollCall::default()
    };
    write(run.path(), (0..2 * CALLS).map(call)).unwrap();
    run
}

#[test]
fn a_log_is_read_once_and_the_progress_of_its_replays_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let run = run(place.path());
    let progress: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
    let steps = Arc::clone(&progress);
    let mut case = Case::from(Observation::open(run.path()).unwrap());
    case.on_progress = Box::new(move |done, of| steps.lock().unwrap().push((done, of)));
    let pollers = (REMEDY.detect)(&case).unwrap();
    assert_eq!(pollers.len(), 2);
    assert!(progress.lock().unwrap().is_empty(), "what is suspected needs no log");
    let first = pollers[0].finding(&case).unwrap();
    {
        let progress = progress.lock().unwrap();
        assert_eq!((progress[0].0, progress[1].0), (0, 1), "the log, then a replay: {progress:?}");
        assert!(progress.is_sorted() && progress.last().is_some_and(|(done, of)| done == of), "{progress:?}");
    }
    std::fs::remove_file(run.path().join("polls-log.parquet")).unwrap();
    let second = pollers[1].finding(&case).unwrap();
    assert_eq!(first.prediction, second.prediction);
    assert!(pollers[0].beyond_limit(&case).unwrap().is_some());
    let table = pollers[0].rehearse(&case, &RehearsalRequest::default()).unwrap().table;
    assert_eq!([table], first.evidence.tables[..]);
    let request = RehearsalRequest { values: vec![Value::Number(300_000)], limit: None };
    assert_eq!(pollers[1].rehearse(&case, &request).unwrap().table.rows.len(), 2);
}
