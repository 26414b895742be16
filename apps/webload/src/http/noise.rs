//! Any bytes from a peer: an answer, a fault or more to read, and never a panic.

use super::chunked::Chunks;
use super::reply::{Body, Expected, Reply, Statuses};
use crate::content::Content;
use crate::origin::read_request;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const SEEDS: [&[u8]; 5] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Status: x; hit\r\n\r\n0123456789",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n",
    b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.0 304 Not Modified\r\nAge: 99999999999999999999\r\n\r\n",
    b"ffffffffffffff\r\n",
    b"POST /w65536/image/4294967296.png HTTP/1.1\r\nContent-Length: 18446744073709551615\r\nWebload-Id: -1\r\n\r\n",
];

/// A known message with some bytes changed, taken away or doubled.
fn broken(random: &mut Pcg64Mcg) -> Vec<u8> {
    let mut bytes = SEEDS[random.random_range(0..SEEDS.len())].to_vec();
    for _ in 0..random.random_range(0..6) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..3) {
            0 => bytes[at] = random.random(),
            1 => bytes.truncate(at.max(1)),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let bodies = [Body::Any, Body::First, Body::Content(Content::of(1), 10)];
    for round in 0..200_000 {
        let bytes = broken(&mut random);
        let step = random.random_range(1..=bytes.len());
        let expected = Expected {
            body: bodies[round % 3],
            statuses: Statuses::Any,
            is_head: round % 7 == 0,
            is_plain: true,
            id: Some(1),
        };
        let mut reply = Reply::default();
        _ = bytes.chunks(step).map(|piece| reply.read(&expected, piece)).find(|read| *read != Ok(None));
        _ = reply.end(&expected);
        let mut chunks = Chunks::default();
        _ = bytes.chunks(step).map(|piece| chunks.read(piece, |_| Ok(()))).find(Result::is_err);
        if let Ok(Some(request)) = read_request(&bytes) {
            request.head(1, 1, &mut Vec::new());
        }
    }
}
