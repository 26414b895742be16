//! The plugin's notes of objects with call sites, by a program in C.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

#[test]
fn places_of_objects_with_call_sites_are_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let program = scratch.path().join("sites");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(native.join("include")).arg("-o");
    let Ok(compiled) = compiler.args([&program, &native.join("tap/tests/sites.c")]).output() else {
        println!("skipped: no C compiler");
        return;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let run = Command::new(&program).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
