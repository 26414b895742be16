//! Nothing that comes from a network makes the reader of HTTP messages panic, and how the bytes are cut changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nearmiss_accelerator::message::probe;

fuzz_target!(|data: &[u8]| {
    let cut = data.first().map_or(1, |byte| usize::from(*byte).max(1));
    let input = data.get(1..).unwrap_or_default();
    assert_eq!(probe::request(input, cut), probe::request(input, usize::MAX));
    assert_eq!(probe::response(input, cut), probe::response(input, usize::MAX));
});
