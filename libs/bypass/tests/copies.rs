//! Copies and fills write what ordinary ones would, at every place of a line, and so does the C header.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use std::path::Path;
use std::process::Command;

proptest! {
    #[test]
    fn the_target_is_as_an_ordinary_copy_leaves_it(at in 0usize..64, from in 0usize..64, length in 0usize..1000, byte: u8) {
        let source: Vec<u8> = (0..1100usize).map(|i| (i * 31 + i / 256) as u8).collect();
        let mut target = vec![0xee; 1200];
        let mut expected = target.clone();
        nearmiss_bypass::copy(&mut target[at..at + length], &source[from..from + length]);
        expected[at..at + length].copy_from_slice(&source[from..from + length]);
        prop_assert_eq!(&target, &expected);
        nearmiss_bypass::fill(&mut target[at..at + length], byte);
        expected[at..at + length].fill(byte);
        prop_assert_eq!(&target, &expected);
    }
}

#[test]
#[should_panic(expected = "one length")]
fn lengths_that_differ_are_refused() {
    nearmiss_bypass::copy(&mut [0; 3], &[0; 4]);
}

#[test]
fn the_c_header_copies_and_fills_alike() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bypass-header");
    for (compiler, language, standard) in [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++11")] {
        let built = Command::new(compiler)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", standard, "-x", language])
            .arg("-I")
            .arg(here.join("../../native/include"))
            .arg(here.join("tests/header.c"))
            .arg("-o")
            .arg(&program)
            .status();
        if built.is_err() {
            println!("skipped: no {compiler} here");
            continue;
        }
        assert!(built.unwrap().success() && Command::new(&program).status().unwrap().success(), "{compiler}");
    }
}
