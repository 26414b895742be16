//! Writes each task's loads and stores of user mode, as a trace has them, into a file of its own: for replays without
//! nearmiss's model.
//!
//!     cargo run --release -p nearmiss-record --example streams -- RUN DIRECTORY
//!
//! A file is named after the task's thread id. A reference has 16 bytes: physical address (u64), instructions since the
//! task's reference before (u32), whether it stores (u32).

use nearmiss_record::reference::{Control, Kind, Record};
use nearmiss_record::run::{RunDir, TRACE};
use nearmiss_record::trace::{TraceError, TraceReader, each_chunk};
use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

/// A task's file so far, and instructions since its last reference.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    instructions: u64,
}

impl Stream {
    fn take(&mut self, record: Record) {
        self.instructions += record.instructions();
        let stores = match record.kind() {
            Some(Kind::Load) => 0u32,
            Some(Kind::Store | Kind::Atomic | Kind::NtStore) => 1,
            _ => return,
        };
        let instructions = u32::try_from(std::mem::take(&mut self.instructions)).unwrap_or(u32::MAX);
        self.bytes.extend(record.paddr().to_le_bytes());
        self.bytes.extend([instructions, stores].into_iter().flat_map(u32::to_le_bytes));
    }
}

fn streams(reader: &mut TraceReader) -> Result<HashMap<u32, Stream>, TraceError> {
    let mut streams: HashMap<u32, Stream> = HashMap::new();
    let mut running: HashMap<u32, u32> = HashMap::new();
    each_chunk(reader, |head, records| {
        let mut at = 0;
        while let Some(record) = records.get(at).copied() {
            at += 1;
            if record.kind() == Some(Kind::Control) {
                let end = at + record.payload_records().unwrap_or(0);
                let payload = records.get(at..end).unwrap_or_default();
                if let Ok(Control::Switch { pid, .. }) = Control::decode(record, payload) {
                    running.insert(head.vcpu, pid);
                }
                at = end;
            } else if let Some(pid) = running.get(&head.vcpu).filter(|_| !record.is_kernel()) {
                streams.entry(*pid).or_default().take(record);
            }
        }
        Ok::<(), TraceError>(())
    })?;
    Ok(streams)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, directory] = arguments.as_slice() else { return Err("streams RUN DIRECTORY".into()) };
    let run = RunDir::open(Path::new(run))?;
    for (pid, stream) in streams(&mut TraceReader::open(&run.file(TRACE))?)? {
        std::fs::write(Path::new(directory).join(pid.to_string()), stream.bytes)?;
    }
    Ok(())
}
