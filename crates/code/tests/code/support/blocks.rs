//! Code cut into blocks as QEMU translates it: up to a branch, from wherever a branch may lead.

use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory};
use nearmiss_code::CodeMap;
use nearmiss_record::code::CodeBlock;
use nearmiss_record::units::InsnId;
use std::collections::BTreeSet;

/// The id of the instruction at an offset of the code.
pub fn id_at(offset: u64) -> InsnId {
    InsnId(u32::try_from(offset).expect("a short code") * 10)
}

/// Adds all blocks that begin at the code's begin, behind a branch or at a branch's target.
pub fn add_all(map: &mut CodeMap, vaddr: u64, code: &[u8]) {
    let mut starts = BTreeSet::from([vaddr]);
    for instruction in Decoder::with_ip(64, code, vaddr, DecoderOptions::NONE).iter() {
        if instruction.flow_control() != FlowControl::Next {
            starts.insert(instruction.next_ip());
            starts.insert(instruction.near_branch_target());
        }
    }
    for start in starts.into_iter().filter(|start| (vaddr..vaddr + code.len() as u64).contains(start)) {
        add(map, vaddr, code, start);
    }
}

/// Adds the block that begins at an address. Ids go to its first instruction, to those that touch memory and to branches
/// with two ways or more.
pub fn add(map: &mut CodeMap, vaddr: u64, code: &[u8], start: u64) {
    let code = &code[(start - vaddr) as usize..];
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut named = Vec::new();
    while decoder.can_decode() {
        let offset = decoder.position();
        let instruction = decoder.decode();
        let decides = matches!(
            instruction.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::IndirectBranch | FlowControl::IndirectCall
        );
        if offset == 0 || decides || !factory.info(&instruction).used_memory().is_empty() {
            named.push((offset as u16, id_at(instruction.ip() - vaddr)));
        }
        if instruction.flow_control() != FlowControl::Next {
            break;
        }
    }
    let payload = CodeBlock::encode(start, &named, &code[..decoder.position()]);
    map.add(&CodeBlock::decode(start, &payload).expect("a whole block"));
}
