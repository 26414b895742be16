//! Several codes at one virtual address: of two processes, and one after the other.

use nearmiss_code::{CodeMap, CoreTimes, KnownCode};
use nearmiss_record::code::CodeBlock;
use nearmiss_record::units::InsnId;

const VADDR: u64 = 0x1000;
/// `mov rax, [rax]`, `test rax, rax`, and back while not zero.
const CHASE: &[u8] = b"\x48\x8b\x00\x48\x85\xc0\x75\xf8";
/// `mov rax, [rdi]`, `inc rdi`, and back while not zero.
const SCAN: &[u8] = b"\x48\x8b\x07\x48\xff\xc7\x75\xf8";

fn add(map: &mut CodeMap, paddr: u64, id: u32, code: &[u8]) {
    let payload = CodeBlock::encode(paddr, &[(0, InsnId(id))], code);
    map.add(&CodeBlock::decode(VADDR, &payload).expect("a whole block"));
}

fn loads(map: &mut CodeMap, id: u32) -> Vec<InsnId> {
    map.origin(InsnId(id)).expect("known code").loads.clone()
}

#[test]
fn two_processes_keep_their_own_code() {
    let mut map = CodeMap::default();
    add(&mut map, 0x7000, 1, CHASE);
    add(&mut map, 0x9000, 2, SCAN);
    add(&mut map, 0x7000, 3, CHASE);
    assert_eq!(loads(&mut map, 1), [InsnId(1), InsnId(3)]);
    assert_eq!(loads(&mut map, 3), [InsnId(1), InsnId(3)]);
    assert!(loads(&mut map, 2).is_empty());
}

#[test]
fn later_code_takes_the_place_of_earlier() {
    let mut map = CodeMap::default();
    add(&mut map, u64::MAX, 1, CHASE);
    assert_eq!(loads(&mut map, 1), [InsnId(1)]);
    add(&mut map, u64::MAX, 1, SCAN);
    let later: Vec<_> = (2..=4).map(|_| loads(&mut map, 1).len()).collect();
    assert_eq!(later, [1, 1, 0]);
}

#[test]
fn code_that_never_came_has_no_answer() {
    let mut map = CodeMap::default();
    add(&mut map, 0x7000, 1, CHASE);
    assert_eq!(map.origin(InsnId(0)), None);
    assert_eq!(map.pace(InsnId(9)), None);
}

#[test]
fn maps_that_share_their_answers_give_what_each_gives_alone() {
    let known = KnownCode::default();
    let dear = CoreTimes { load_cycles: 50.0, ..CoreTimes::default() };
    let shared = |times| CodeMap::new(times).sharing(&known);
    let mut ahead = shared(CoreTimes::default());
    let mut pairs = [CoreTimes::default(), dear].map(|times| [CodeMap::new(times), shared(times)]);
    let answers = |map: &mut CodeMap, id| (map.origin(InsnId(id)).cloned(), map.pace(InsnId(id)));
    for round in 0..40u32 {
        let code = if round % 3 == 0 { SCAN } else { CHASE };
        for map in pairs.iter_mut().flatten().chain([&mut ahead]) {
            add(map, 0x7000 + u64::from(round % 4) * 0x1000, round, code);
        }
        // The map that runs ahead finds most answers before the others need them.
        (0..=round).for_each(|id| drop(answers(&mut ahead, id)));
        for [alone, beside] in &mut pairs {
            for id in (0..=round).step_by(1 + round as usize % 3) {
                assert_eq!(answers(beside, id), answers(alone, id), "round {round}, instruction {id}");
            }
        }
    }
    let [[one, _], [other, _]] = &mut pairs;
    let differ = (0..40).any(|id| answers(one, id) != answers(other, id));
    assert!(differ, "another core's times are nobody else's");
}
