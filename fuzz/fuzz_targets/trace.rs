//! Any bytes are a trace or an error: never a panic, never memory out of proportion.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nearmiss_record::trace::{TraceReader, validate};
use std::io::Write;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    if let Ok(mut reader) = TraceReader::open(file.path()) {
        let _ = validate(&mut reader);
    }
});
