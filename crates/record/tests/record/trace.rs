//! A trace comes back as it was written, and hostile files are errors.
#![allow(clippy::unwrap_used)]

use nearmiss_record::abi::{CHUNK_LAST, ChunkHeader};
use nearmiss_record::code::CodeBlock;
use nearmiss_record::reference::{ControlKind, FLAG_KERNEL, Kind, Record};
use nearmiss_record::run::{Associativity, Filter, FirstLevel};
use nearmiss_record::side::{Context, Insn, SideTables};
use nearmiss_record::trace::{Block, TraceError, TraceHeader, TraceReader, TraceWriter, validate};
use nearmiss_record::units::InsnId;
use proptest::prelude::*;
use std::path::Path;

const INSNS: u32 = 5000;

fn header() -> TraceHeader {
    TraceHeader {
        schema: "nearmiss/trace/1".into(),
        cpus: 2,
        node_bytes: vec![1 << 30, 1 << 30],
        only_user: false,
        starts_late: true,
        filter: Filter {
            line_log2: 6,
            index_low: 6,
            index_bits: 6,
            fetches: true,
            contexts: true,
            ..Filter::default()
        },
    }
}

fn side() -> SideTables {
    SideTables {
        insns: (0..u64::from(INSNS))
            .map(|n| Insn { vaddr: 0x40_0000 + 4 * n, load_hits: n, ..Insn::default() })
            .collect(),
        contexts: vec![Context::default(), Context { parent: 0, call: 7 }],
        prefetches: 1,
        io_accesses: 2,
        lost_before_share: 3,
        skipped: 4,
    }
}

fn reference() -> impl Strategy<Value = Record> {
    (0..4u8, 0..1u64 << 48, 1..=64u32, 0..INSNS, 0..(2u64 << 30) / 4096, any::<u8>()).prop_map(
        |(kind, vaddr, size, insn, page, count)| {
            let kind = [Kind::Load, Kind::Store, Kind::Atomic, Kind::Fetch][kind as usize];
            let vaddr = vaddr.min((1 << 48) - 64);
            let size = size.min(64 - (vaddr % 64) as u32);
            let flags = if vaddr >> 47 == 1 { FLAG_KERNEL } else { 0 };
            Record::reference(kind, vaddr, size, flags, InsnId(insn), page, count)
        },
    )
}

/// One reference, or a control record with its payload.
fn records() -> impl Strategy<Value = Vec<Record>> {
    prop_oneof![
        20 => reference().prop_map(|r| vec![r]),
        1 => Just(vec![Record::control(ControlKind::Context, 1, 0, 0)]),
        1 => (0..100u64).prop_map(|bytes| {
            let mut all = vec![Record::control(ControlKind::Maps, 0, 0, bytes)];
            all.resize(1 + bytes.div_ceil(16) as usize, Record { a: 0x1234, b: bytes });
            all
        }),
        1 => (0..INSNS, prop::collection::vec(any::<u8>(), 1..100)).prop_map(|(insn, code)| code_of(0x1000, insn, &code)),
    ]
}

/// Code with a number for its first instruction.
fn code_of(paddr: u64, insn: u32, code: &[u8]) -> Vec<Record> {
    let mut payload = CodeBlock::encode(paddr, &[(0, InsnId(insn))], code);
    let mut all = vec![Record::control(ControlKind::Code, 0x40_1000, 0, payload.len() as u64)];
    payload.resize(payload.len().next_multiple_of(16), 0);
    all.extend(payload.chunks_exact(16).map(bytemuck::pod_read_unaligned::<Record>));
    all
}

type Chunks = Vec<(ChunkHeader, Vec<Record>)>;

fn chunks() -> impl Strategy<Value = Chunks> {
    prop::collection::vec((0..2u32, prop::collection::vec(records(), 0..60), any::<u32>()), 1..20).prop_map(|all| {
        let last = all.len() - 1;
        all.into_iter()
            .enumerate()
            .map(|(n, (vcpu, groups, task))| {
                let records: Vec<Record> = groups.into_iter().flatten().collect();
                let header = ChunkHeader {
                    seq: n as u64,
                    slice: n as u64 / 3,
                    vcpu,
                    records: records.len() as u32,
                    instructions: n as u64 * 1000,
                    task: 0xffff_8880_0000_0000 | u64::from(task),
                    context: 1,
                    flags: if n == last { CHUNK_LAST } else { 0 },
                    ..ChunkHeader::default()
                };
                (header, records)
            })
            .collect()
    })
}

fn write(path: &Path, chunks: &Chunks) -> u64 {
    let mut writer = TraceWriter::create(path, &header()).unwrap();
    for (header, records) in chunks {
        writer.chunk(header, records).unwrap();
    }
    writer.finish(&side()).unwrap().bytes
}

fn read(path: &Path) -> Result<(Chunks, SideTables), TraceError> {
    let mut reader = TraceReader::open(path)?;
    validate(&mut reader)?;
    let mut block = Block::default();
    let mut all = Vec::new();
    for n in 0..reader.blocks() {
        reader.read(n, &mut block)?;
        all.extend(block.chunks().map(|(h, r)| (*h, r.to_vec())));
    }
    Ok((all, reader.side().clone()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_written_trace_comes_back(chunks in chunks()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.nmt");
        write(&path, &chunks);
        let (back, tables) = read(&path).unwrap();
        prop_assert_eq!(back, chunks);
        prop_assert_eq!(tables, side());
    }
}

/// A fixed stream of some size: a strided loop, a random walk, a call now and then.
fn program(records: usize) -> Chunks {
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        seed >> 33
    };
    let mut all = Vec::with_capacity(records);
    for n in 0..records as u64 {
        all.push(match n % 3 {
            0 => Record::reference(
                Kind::Load,
                0x7f00_0000_0000 + n * 64,
                8,
                0,
                InsnId(1),
                100 + n * 64 / 4096 % 1000,
                12,
            ),
            1 => {
                let at = random() % (1 << 20) / 8 * 8;
                Record::reference(Kind::Load, 0x5555_0000_0000 + at, 8, 0, InsnId(2), 5000 + at / 4096, 3)
            }
            _ => Record::reference(
                Kind::Store,
                0x7e00_0000_0000 + n * 32,
                8,
                0,
                InsnId(3),
                9000 + n * 32 / 4096 % 1000,
                4,
            ),
        });
    }
    let mut out = Chunks::new();
    for (n, part) in all.chunks(4092).enumerate() {
        let header = ChunkHeader { seq: n as u64, records: part.len() as u32, ..ChunkHeader::default() };
        out.push((header, part.to_vec()));
    }
    out
}

#[test]
fn a_record_takes_at_most_two_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.nmt");
    let chunks = program(1_000_000);
    let bytes = write(&path, &chunks);
    assert!(bytes < 2_000_000, "{bytes} bytes for a million records");
    assert_eq!(read(&path).unwrap().0, chunks);
}

#[test]
fn the_first_bad_record_is_named_by_stream_and_position() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.nmt");
    let mut chunks = program(20_000);
    chunks[2].1[17] = Record::reference(Kind::Load, 0x1000, 8, 0, InsnId(INSNS + 5), 1, 0);
    write(&path, &chunks);
    let error = read(&path).unwrap_err().to_string();
    assert!(error.ends_with("vCPU 0, record 8201 (block 0, chunk 2): instruction 5005 of a table of 5000"), "{error}");

    chunks[2].1[17] = Record::reference(Kind::Load, 0x1030, 8, 0, InsnId(1), 1 << 20, 0);
    write(&path, &chunks);
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("physical page 0x100000 lies outside"), "{error}");

    chunks[2].1[17] = Record { a: 0x1030 | 7 << 48, b: 0 };
    write(&path, &chunks);
    assert!(read(&path).unwrap_err().to_string().contains("unknown kind"));
}

#[test]
fn code_of_instructions_or_pages_that_do_not_exist_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.nmt");
    let trace_of = |records: Vec<Record>| {
        let header = ChunkHeader { records: records.len() as u32, flags: CHUNK_LAST, ..ChunkHeader::default() };
        write(&path, &vec![(header, records)]);
        read(&path).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(trace_of(code_of(0x1000, INSNS - 1, &[0xc3])), Ok(()));
    assert_eq!(trace_of(code_of(u64::MAX, 0, &[0xc3])), Ok(()), "a device has no page");
    let refused = |records, why| assert!(trace_of(records).is_err_and(|error| error.ends_with(why)), "{why}");
    refused(code_of(0x1000, INSNS, &[0xc3]), "code of instruction 5000 of a table of 5000");
    refused(code_of(2 << 30, 0, &[0xc3]), "code at 0x80000000 lies outside the 524288 pages of memory");
    refused(code_of(0x1000, 0, &[]), "code of no length that QEMU translates");
    let mut cut = code_of(0x1000, 0, &[0xc3; 20]);
    cut.pop();
    refused(cut, "a control record's payload leaves its chunk");
}

#[test]
fn an_unfinished_trace_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.nmt");
    let mut writer = TraceWriter::create(&path, &header()).unwrap();
    for (header, records) in &program(10_000) {
        writer.chunk(header, records).unwrap();
    }
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn files_that_are_no_traces_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.nmt");
    for bytes in [&b""[..], b"hello", b"NMTRACE1", b"NMTRACE1\xff\xff\xff\xff"] {
        std::fs::write(&path, bytes).unwrap();
        assert!(TraceReader::open(&path).is_err());
    }
    std::fs::write(&path, b"#!/bin/sh\necho not a trace\n").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("not a nearmiss trace"));
}

#[test]
fn a_file_of_records_that_were_for_one_model_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace.nmt");
    let mut header = header();
    header.filter.first_level =
        Some(FirstLevel { fetch: Some(Associativity { ways: 8, tree: false }), ..FirstLevel::default() });
    TraceWriter::create(&path, &header).unwrap().finish(&side()).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("the tap ran the first level"), "{error}");
}

/// The bounded run of `fuzz/fuzz_targets/trace.rs`: thousands of damaged files, each an error or a valid trace.
#[test]
fn damaged_files_are_errors_not_panics() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.nmt");
    write(&path, &program(9_000));
    let good = std::fs::read(&path).unwrap();
    let mut seed = 7u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let mut refused = 0;
    for _ in 0..3000 {
        let mut bad = good.clone();
        for _ in 0..=random(4) {
            let at = random(bad.len());
            match random(4) {
                0 => bad[at] ^= 1 << random(8),
                1 => bad[at] = [0, 0xff, 0x7f, 0x80][random(4)],
                2 => bad.truncate(at.max(1)),
                _ => bad.splice(at..at, std::iter::repeat_n(random(256) as u8, random(32))).for_each(drop),
            }
        }
        std::fs::write(&path, &bad).unwrap();
        refused += usize::from(read(&path).is_err());
    }
    assert!(refused > 2500, "only {refused} of 3000 damaged files were refused");
}

/// Past the checksums: columns that lie.
#[test]
fn lying_columns_are_errors_not_panics() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.nmt");
    let mut chunks = program(3_000);
    let (header, records) = &mut chunks[0];
    records.splice(1_500..1_500, code_of(0x1000, 5, &[0x90; 400]));
    header.records = records.len() as u32;
    write(&path, &chunks);
    let good = std::fs::read(&path).unwrap();
    let start = 12 + u32::from_le_bytes(good[8..12].try_into().unwrap()) as usize;
    let packed = u32::from_le_bytes(good[start..start + 4].try_into().unwrap()) as usize;
    let block = zstd::decode_all(&good[start + 16..start + 16 + packed]).unwrap();
    let tail = &good[start + 16 + packed..];
    let mut seed = 3u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    for _ in 0..2000 {
        let mut lying = block.clone();
        for _ in 0..=random(6) {
            let at = if random(3) == 0 { random(36 + 60) } else { random(lying.len()) };
            lying[at] = random(256) as u8;
        }
        let repacked = zstd::encode_all(lying.as_slice(), 1).unwrap();
        let mut file = good[..start].to_vec();
        file.extend_from_slice(&(repacked.len() as u32).to_le_bytes());
        file.extend_from_slice(&good[start + 4..start + 16]);
        file.extend_from_slice(&repacked);
        let moved = file.len() as i64 - (start + 16 + packed) as i64;
        let mut end = tail.to_vec();
        let at = end.len() - 32;
        for field in [at, at + 8] {
            let old = i64::from_le_bytes(end[field..field + 8].try_into().unwrap());
            end[field..field + 8].copy_from_slice(&(old + moved).to_le_bytes());
        }
        file.extend_from_slice(&end);
        std::fs::write(&path, &file).unwrap();
        let _ = read(&path);
    }
}
