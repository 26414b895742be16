//! Any bytes at any place give an answer, the same each time, and soon.

use nearmiss_code::{CodeMap, Needed, Origin, Pace};
use nearmiss_record::code::CodeBlock;
use nearmiss_record::units::InsnId;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Block {
    vaddr: u64,
    paddr: u64,
    code: Vec<u8>,
    ids: u32,
}

/// Bytes, more often than not such as begin moves, calls and branches to near by.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let likely: &[&[u8]] = &[
        b"\x48\x8b\x00",
        b"\x48\x8b\x45\xf8",
        b"\x48\x89\x45\xf8",
        b"\x48\x8b\x04\x24",
        b"\x48\x01\xc8",
        b"\x50",
        b"\x58",
        b"\x75\xf0",
        b"\xeb\x04",
        b"\xe8\x10\x00\x00\x00",
        b"\xc3",
        b"\x55",
        b"\x48\x89\xe5",
        b"\xc9",
        b"\xf3\xa4",
        b"\x48\x8b\x05\x08\x00\x00\x00",
        b"\x48\x0f\x44\xc1",
        b"\xc4\xe2\xed\x91\x04\xcf",
        b"\x0f\x05",
        b"\xc8\xff\xff\x1f",
    ];
    let part = prop_oneof![
        4 => prop::sample::select(likely).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..8),
    ];
    prop::collection::vec(part, 1..12).prop_map(|parts| parts.concat())
}

fn block() -> impl Strategy<Value = Block> {
    let vaddr = prop_oneof![9 => (0_u64..96).prop_map(|offset| 0x40_0fd0 + offset), 1 => any::<u64>()];
    let paddr = prop_oneof![Just(u64::MAX), Just(0x1fd0), Just(0x2fd0)];
    (vaddr, paddr, code(), 0_u32..64).prop_map(|(vaddr, paddr, code, ids)| Block { vaddr, paddr, code, ids })
}

fn answers(blocks: &[Block]) -> Vec<(Option<Origin>, Option<Pace>, Option<Needed>)> {
    let mut map = CodeMap::default();
    let mut answers = Vec::new();
    for block in blocks {
        let named: Vec<_> = (0..block.code.len() as u16).map(|at| (at, InsnId(block.ids + u32::from(at)))).collect();
        let payload = CodeBlock::encode(block.paddr, &named, &block.code);
        map.add(&CodeBlock::decode(block.vaddr, &payload).expect("a whole block"));
        let ids = (0..200).chain([u32::MAX]).map(InsnId);
        answers.extend(ids.map(|id| (map.origin(id).cloned(), map.pace(id), map.needed(id))));
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn any_code_has_an_answer(blocks in prop::collection::vec(block(), 1..10)) {
        let first = answers(&blocks);
        prop_assert_eq!(&first, &answers(&blocks));
        for (origin, ..) in first {
            let loads = origin.map(|origin| origin.loads).unwrap_or_default();
            prop_assert!(loads.is_sorted());
        }
    }
}
