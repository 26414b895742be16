//! Any fields are an exchange to decide about: never a panic, and what must hold for every exchange holds.
#![no_main]

#[path = "../../apps/cache-policy/tests/hostile/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| exercise::exercise(bytes));
