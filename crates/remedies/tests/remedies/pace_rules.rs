//! The rules of the preloaded library agree with the vectors that the rehearsal's rules agree with.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::path::Path;
use std::process::Command;

#[test]
fn the_library_s_rules_are_those_of_the_vectors() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/preload/pace");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pace-rules");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]);
    cc.args([sources.join("tests/rules.c"), sources.join("rules.c")]).arg("-o").arg(&program);
    assert!(cc.status().unwrap().success());
    let vectors = File::open(sources.join("tests/vectors.txt")).unwrap();
    let output = Command::new(program).stdin(vectors).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed, "90 decisions\n");
}
