//! A real trace that carries tasks: threads that took turns on one CPU, replayed on two.

use crate::guest_slots::for_a_guest;
use nearmiss_machine::describe;
use nearmiss_machine::model::{Model, ModelError, ModelOptions};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::abi::ChunkHeader;
use nearmiss_record::model::MissClass;
use nearmiss_record::policy::{Order, PlacePolicy, Placed, Policy};
use nearmiss_record::reference::{Control, Kind, Record};
use nearmiss_record::trace::{TraceError, TraceReader, each_chunk};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const MACHINE: &str = "pentium-pro-4way-512k";
const TIMES: u64 = 2_000_000;

/// Traces the subject, its threads on one CPU or on two, and returns its stream.
fn trace(place: &Path, one_cpu: bool) -> TraceReader {
    let program = crate::subjects::subject("false-sharing");
    let times = TIMES.to_string();
    let mut line = vec!["trace", "-q", "-m", MACHINE, "--cpus", "2", "--memory", "1GiB", "--no-curve"];
    line.extend(["--carry", "tasks", "--", &program, "--times", &times]);
    line.extend(one_cpu.then_some("--one-cpu"));
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
    let options = ModelOptions::of(&header, Order::Modelled);
    let mut model = Model::new(&machine, policy, &options, NullObserver)?;
    let mut feed = |head: &ChunkHeader, records: &[Record]| {
        model.chunk(head, records).expect("a sound chunk");
        Ok::<_, TraceError>(())
    };
    each_chunk(trace, &mut feed).expect("a sound trace");
    Ok(model.finish()?.0.sum().levels[0].class(MissClass::FalseSharing))
}

/// The workers on a CPU each, side by side.
fn apart(trace: &mut TraceReader) -> Policy {
    let pids = workers(trace);
    assert_eq!(pids.len(), 2, "{pids:?}");
    let tasks = pids.iter().zip(0..).map(|(&pid, cpu)| Placed { pid, cpu }).collect();
    Policy { place: PlacePolicy::Tasks { tasks, window_instructions: 1000 }, ..Policy::default() }
}

#[test]
fn threads_of_one_cpu_show_on_two_the_false_sharing_of_threads_on_two() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let counts = [false, true].map(|one_cpu| {
        let mut trace = trace(place.path(), one_cpu);
        let placed = apart(&mut trace);
        [Policy::default(), placed].map(|policy| false_sharing(&mut trace, &policy).expect("a replay"))
    });
    let [[recorded_on_two, placed_from_two], [recorded_on_one, placed_from_one]] = counts;
    // The kernel's lines and what the program does before its threads run are there in any case.
    assert!(recorded_on_one < TIMES / 20, "{recorded_on_one} on one CPU");
    // Slices of a round are not equally long: some of a recording on two CPUs runs alone.
    assert!(recorded_on_two > TIMES / 2, "{recorded_on_two} on two CPUs");
    assert!(placed_from_one >= recorded_on_two, "{placed_from_one} placed, {recorded_on_two} on two CPUs");
    let apart = placed_from_one.abs_diff(placed_from_two);
    assert!(apart < placed_from_two / 20, "{placed_from_one} from one CPU, {placed_from_two} from two");
}
