//! Damaged and hostile logs: each is read or refused in one line; none panics, none takes memory as it claims.

#![allow(clippy::unwrap_used)]

use crate::support;
use nearmiss_record::logs::{LockWait, PollCall, Reader, Row, TaskTime, Writer};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::fs;
use std::path::Path;

/// Mutants of each file.
const MUTANTS: usize = 1_500;

fn small<R: Row>(path: &Path, rows: i64) -> Vec<u8> {
    let mut writer = Writer::create(path).unwrap();
    for n in 0..rows {
        let texts = [format!("text {}", n % 5), "same".to_owned()];
        writer.push(&support::row::<R>(&[n * 8, n * 8 + 50], &texts).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

/// One to four changes: a byte replaced, a bit flipped, bytes removed, repeated or blown up, the end cut off.
fn mutant(of: &[u8], random: &mut Pcg64) -> Vec<u8> {
    let mut bytes = of.to_vec();
    for _ in 0..random.random_range(1..=4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..40)).min(bytes.len());
        match random.random_range(0..7) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => bytes[at..end].fill(0xff),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => bytes.truncate(at),
            _ => {
                // A number of five bytes, as large as 32 bits can hold, where there was one of one byte.
                bytes.splice(at..=at, [0xfe, 0xff, 0xff, 0xff, 0x0f]);
            }
        }
    }
    bytes
}

/// Reads a file to its end or to its first error; whether it was read.
fn is_read<R: Row>(path: &Path) -> bool {
    let error = match Reader::<R>::open(path) {
        Ok(rows) => rows.filter_map(Result::err).next(),
        Err(error) => Some(error),
    };
    if let Some(error) = &error {
        let message = error.to_string();
        assert!(
            !message.contains('\n') && message.len() < 600 && message.starts_with(path.to_str().unwrap()),
            "{message}"
        );
        assert!(message.ends_with(": observe again"), "{message}");
    }
    error.is_none()
}

fn mutants_are_read_or_refused<R: Row>(seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(R::FILE);
    let good = small::<R>(&path, 300);
    assert!(is_read::<R>(&path));
    let mut random = Pcg64::seed_from_u64(seed);
    let mut read = 0;
    let mutants = std::env::var("NEARMISS_MUTANTS").map_or(MUTANTS, |n| n.parse().unwrap());
    for _ in 0..mutants {
        fs::write(&path, mutant(&good, &mut random)).unwrap();
        read += usize::from(is_read::<R>(&path));
    }
    assert!(read > 0 && read < mutants / 2, "{read} of {mutants} read");
}

#[test]
fn mutants_of_a_log_of_polls() {
    mutants_are_read_or_refused::<PollCall>(1);
}

#[test]
fn mutants_of_a_log_of_lock_waits() {
    mutants_are_read_or_refused::<LockWait>(2);
}

#[test]
fn every_beginning_of_a_log_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(TaskTime::FILE);
    let good = small::<TaskTime>(&path, 20);
    for end in 0..good.len() {
        fs::write(&path, &good[..end]).unwrap();
        assert!(!is_read::<TaskTime>(&path), "the first {end} bytes");
    }
}
