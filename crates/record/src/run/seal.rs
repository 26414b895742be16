//! A record's checksum: its last member, over all bytes before. An edited record no longer fits it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use twox_hash::XxHash64;

const BEFORE_DIGITS: &[u8] = br#","checksum":"xxh64:"#;
const DIGITS: usize = 16;
const AFTER_DIGITS: &[u8] = br#""}"#;

/// The record does not fit its checksum.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited;

/// Returns the JSON object with its checksum.
pub(super) fn sealed(mut object: Vec<u8>) -> Vec<u8> {
    if object.ends_with(b"}") && object != b"{}" {
        object.pop();
        let digits = digits_of(&object);
        object.extend([BEFORE_DIGITS, digits.as_bytes(), AFTER_DIGITS].concat());
    }
    object
}

/// Refuses an object that does not fit its checksum. Earlier versions wrote none: such an object is taken as it is.
pub(super) fn check(object: &[u8]) -> Result<(), Edited> {
    let object = object.trim_ascii_end();
    match split(object) {
        Some((before, digits)) if digits_of(before).as_bytes() == digits => Ok(()),
        Some(_) => Err(Edited),
        None if names_a_checksum(object) => Err(Edited),
        None => Ok(()),
    }
}

fn digits_of(bytes: &[u8]) -> String {
    format!("{:0DIGITS$x}", XxHash64::oneshot(0, bytes))
}

/// Splits an object into the bytes under the checksum, and its digits.
fn split(object: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits_end = object.strip_suffix(AFTER_DIGITS)?;
    let (before, digits) = digits_end.split_at_checked(digits_end.len().checked_sub(DIGITS)?)?;
    Some((before.strip_suffix(BEFORE_DIGITS)?, digits))
}

/// Whether the object has a checksum at another place or in another form than ours: a program rewrote it.
fn names_a_checksum(object: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Object {
        checksum: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Object>(object).is_ok_and(|object| object.checksum.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_record_stands_until_one_byte_of_it_changes() {
        let sealed = sealed(br#"{"misses":1234}"#.to_vec());
        // The checksum of an earlier version must stay the checksum of the next one.
        assert_eq!(String::from_utf8_lossy(&sealed), r#"{"misses":1234,"checksum":"xxh64:209812548db51ade"}"#);
        assert_eq!(check(&sealed), Ok(()));
        assert_eq!(check(&[&sealed[..], b"\n"].concat()), Ok(()));
        for at in 0..sealed.len() - AFTER_DIGITS.len() {
            let mut edited = sealed.clone();
            edited[at] ^= 1;
            let no_seal_left = split(&edited).is_none() && !names_a_checksum(&edited);
            assert!(check(&edited) == Err(Edited) || no_seal_left, "{}", String::from_utf8_lossy(&edited));
        }
    }

    #[test]
    fn a_record_that_a_program_rewrote_is_refused_and_one_of_an_earlier_version_is_not() {
        assert_eq!(check(b"{\n  \"misses\": 1234,\n  \"checksum\": \"xxh64:209812548db51ade\"\n}\n"), Err(Edited));
        assert_eq!(check(br#"{"checksum":"xxh64:209812548db51ade","misses":1234}"#), Err(Edited));
        assert_eq!(check(br#"{"misses":1234}"#), Ok(()));
        // Bytes that are no JSON are refused by their reader.
        assert_eq!(check(b"misses"), Ok(()));
    }
}
