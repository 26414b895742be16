//! Input that `nearmiss gate` refuses before a guest boots: one line, exit code 2.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

const BASELINE: &str = r#"{"schema":"nearmiss/baseline/3","nearmiss":"0",
    "recorder":{"machine":"zen4-genoa","cpus":1,"kernel":"6.1","emulator":"QEMU 7.2"},
    "side":{"command":"true","least_kept":1000,"figures":{"faults":[1,1]},"parts":[]}}"#;

fn refused(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    let output = command.current_dir(directory).arg("gate").args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty());
    stderr
}

#[test]
fn bad_use_is_refused_in_one_line_with_the_way_out() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("other.json"), r#"{"schema":"nearmiss/model/2"}"#).unwrap();
    std::fs::write(place.path().join("damaged.json"), r#"{"schema":"nearmiss/baseline/3"}"#).unwrap();
    std::fs::write(place.path().join("older.json"), r#"{"schema":"nearmiss/baseline/2"}"#).unwrap();
    std::fs::write(place.path().join("base.json"), BASELINE).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (
            &["-m", "xeon-scalable", "--against", "base.json", "--", "true"],
            "the figures of base.json are of zen4-genoa",
        ),
        (&["--recordings", "9", "--at-most", "8", "true", "true"], "--at-most 8 is less than --recordings 9"),
        (&["--max-worse", "l1=1%,l1=2%", "true", "true"], "`l1` has two limits here"),
        (&["--timeout", "0s", "true", "true"], "no time at all"),
        (&["-m", "host", "true", "true"], "name one of `nearmiss machine list`, such as zen4-genoa"),
        (&["-m", "no-such-machine", "true", "true"], "no-such-machine"),
        (&["true"], "<NEW>"),
        (&[" ", "true"], "no command; write for example"),
        (&["--", "true"], "give --against FILE, or --write FILE first"),
        (&["true", "./no-such-program"], "./no-such-program: command not found"),
        (&["--max-worse", "0.02", "true", "true"], "write a share such as 2%, or a number of events such as 0"),
        (&["--max-worse", "speed=1%", "true", "true"], "no figure is called `speed`"),
        (&["--against", "none.json", "--", "true"], "none.json: no such file or directory"),
        (&["--against", "other.json", "--", "true"], "schema `nearmiss/model/2`"),
        (&["--against", "older.json", "--", "true"], "this nearmiss reads `nearmiss/baseline/3`: write it again"),
        (&["--against", "damaged.json", "--", "true"], "write it again with `nearmiss gate --write`"),
        (&["--write", "none/base.json", "--", "true"], "no such place for a file"),
        (&["--write", "base.json", "true", "true"], "cannot be used with"),
        (&["--write", "base.json", "--junit", "x.xml", "--", "true"], "cannot be used with"),
        (&["--recordings", "1", "true", "true"], "1 is not in 2..=100"),
    ];
    for (arguments, expected) in cases {
        let stderr = refused(place.path(), arguments);
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 4, "nothing is left");
}
