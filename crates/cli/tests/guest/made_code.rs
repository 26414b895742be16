//! Names of code that the command makes at run time, out of the guest.

use crate::guest_slots::for_a_guest;
use nearmiss_record::model::ModelRecord;
use std::path::Path;
use std::process::Command;

const LINES: u64 = 1 << 16;

#[test]
fn code_made_in_the_guest_has_the_names_that_its_runtime_wrote_there() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/made_code.py");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    command.current_dir(place.path()).args("trace --only user --memory 1GiB --timeout 5m --json model.json".split(' '));
    let output = command.args(["--", "/usr/bin/python3"]).arg(script).output().expect("nearmiss runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let model = std::fs::read(place.path().join("model.json")).expect("a model");
    let model: ModelRecord = serde_json::from_slice(&model).expect("of its schema");
    let made = model.functions.iter().find(|function| function.module == "[jit]" && function.name == "each_line");
    let made = made.unwrap_or_else(|| panic!("{:?}", model.functions));
    // And the one that returns from it.
    assert_eq!(made.tally.loads, LINES + 1);
}
