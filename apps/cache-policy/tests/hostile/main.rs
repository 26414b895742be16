//! Fields from the network contain anything: nothing panics, and what must hold holds. The fuzz target `cache_policy`
//! runs the same without an end.

mod exercise;

use exercise::exercise;
use proptest::prelude::*;

/// Parts of the grammars, so that random fields come near to meaning something.
const PIECES: [&str; 44] = [
    "max-age",
    "s-maxage",
    "no-cache",
    "no-store",
    "private",
    "public",
    "must-understand",
    "stale-if-error",
    "stale-while-revalidate",
    "max-stale",
    "min-fresh",
    "only-if-cached",
    "=",
    "\"",
    "\\",
    ",",
    ", ",
    ";",
    " ",
    "\t",
    "*",
    "0",
    "1",
    "99999999999999999999",
    "-",
    "bytes=",
    "W/",
    "\"a\"",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "gzip",
    "x-other",
    "close",
    "http://",
    "//",
    "..",
    "/",
    "?",
    "example.com",
    ":80",
    "é",
    "%",
    "[",
];

fn value() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..8);
    let random = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![3 => pieces.prop_map(|pieces| pieces.concat().into_bytes()), 1 => random]
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let line = || (any::<u8>(), value()).prop_map(|(name, value)| [&[name][..], &value, b"\n"].concat());
    let lines = || prop::collection::vec(line(), 0..8).prop_map(|lines| lines.concat());
    (lines(), lines()).prop_map(|(request, response)| [request, b"\n".to_vec(), response].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn near_to_the_grammar(message in message()) {
        exercise(&message);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise(&bytes);
    }
}

/// A field of a megabyte takes time in proportion, with any content.
#[test]
fn long_fields_take_linear_time() {
    for pattern in ["\"", "\\\"", "\"\\\",", ",", "a=\"", "a=b,", " ,\t"] {
        let mut bytes = b"\0".to_vec();
        bytes.extend(pattern.as_bytes().iter().cycle().take(1 << 20));
        let begun = std::time::Instant::now();
        exercise(&[&bytes[..], b"\n\n", &bytes].concat());
        assert!(begun.elapsed().as_secs() < 20, "{pattern}: {:?}", begun.elapsed());
    }
}
