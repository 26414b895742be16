//! A real trace that carries tasks: threads that took turns on one CPU, replayed on two.

mod guest;
mod subjects;

use guest::can_trace;
use nearmiss_machine::describe;
use nearmiss_machine::model::{Model, ModelError, ModelOptions};
use nearmiss_machine::observer::Deaf;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::model::MissClass;
use nearmiss_record::policy::{Order, PlacePolicy, Placed, Policy};
use nearmiss_record::reference::{Control, Kind, Record};
use nearmiss_record::trace::{TraceError, TraceReader, each_chunk};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const MACHINE: &str = "pentium-pro-4way-512k";
const TIMES: u64 = 200_000;

/// Traces the subject and returns its stream.
fn trace(place: &Path, args: &[&str]) -> TraceReader {
    let program = subjects::subject("false-sharing");
    let times = TIMES.to_string();
    let mut line = vec!["trace", "-q", "-m", MACHINE, "--cpus", "2", "--memory", "1GiB", "--no-curve"];
    line.extend(args.iter().filter(|arg| !arg.starts_with("--one")));
    line.extend(["--", &program, "--times", &times]);
    line.extend(args.iter().filter(|arg| arg.starts_with("--one")));
    let done = Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(place).args(line).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let runs = std::fs::read_dir(place.join("nearmiss-runs")).expect("runs").flatten();
    let run = runs.max_by_key(std::fs::DirEntry::file_name).expect("a run").path();
    TraceReader::open(&run.join("trace.nmt")).expect("a trace")
}

/// Threads of the subject but its first.
fn workers(trace: &mut TraceReader) -> Vec<u32> {
    let mut found = BTreeSet::new();
    each_chunk(trace, |_, records| {
        for (at, record) in records.iter().enumerate().filter(|(_, record)| record.kind() == Some(Kind::Control)) {
            let payload = record.payload_records().and_then(|length| records.get(at + 1..at + 1 + length));
            if let Some(Ok(Control::Switch { pid, tgid, comm, .. })) = payload.map(|p| Control::decode(*record, p))
                && comm == "false-sharing"
                && pid != tgid
            {
                found.insert(pid);
            }
        }
        Ok::<_, TraceError>(())
    })
    .expect("a sound trace");
    found.into_iter().collect()
}

/// False sharing in the first level, in the modelled order.
fn false_sharing(trace: &mut TraceReader, policy: &Policy) -> Result<u64, ModelError> {
    let machine = describe::cut(&nearmiss_host::load(MACHINE).expect("a preset"), 2);
    let header = trace.header().clone();
    let options = ModelOptions {
        order: Order::Modelled,
        only_user: header.only_user,
        coherence: true,
        filter: header.filter,
        node_bytes: header.node_bytes,
        cpus: header.cpus,
    };
    let mut model = Model::new(&machine, policy, &options, Deaf)?;
    let mut meet = |head: &ChunkHeader, records: &[Record]| {
        model.chunk(head, records).expect("a sound chunk");
        Ok::<_, TraceError>(())
    };
    each_chunk(trace, &mut meet).expect("a sound trace");
    Ok(model.finish()?.0.sum().levels[0].class(MissClass::FalseSharing))
}

#[test]
fn threads_of_one_cpu_show_on_two_the_false_sharing_of_threads_on_two() {
    if !can_trace() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut pinned = trace(place.path(), &[]);
    let mut one = trace(place.path(), &["--carry", "tasks", "--one-cpu"]);
    let pids = workers(&mut one);
    assert_eq!(pids.len(), 2, "{pids:?}");
    let tasks = pids.iter().zip(0..).map(|(&pid, cpu)| Placed { pid, cpu }).collect();
    let place = PlacePolicy::Tasks { tasks, window_instructions: 1000 };
    let apart = Policy { place, ..Policy::default() };
    let as_recorded = false_sharing(&mut one, &Policy::default()).expect("a replay");
    let (placed, on_two) = (false_sharing(&mut one, &apart), false_sharing(&mut pinned, &Policy::default()));
    let (placed, on_two) = (placed.expect("a replay"), on_two.expect("a replay"));
    assert!(as_recorded < TIMES / 100, "{as_recorded} on one CPU");
    assert!(on_two > TIMES / 2, "{on_two} on two CPUs");
    assert!(placed > on_two * 8 / 10 && placed < on_two * 12 / 10, "{placed} placed, {on_two} on two CPUs");
    let refused = false_sharing(&mut pinned, &apart).expect_err("a filter by CPU");
    assert!(refused.to_string().contains("--carry tasks"), "{refused}");
}
