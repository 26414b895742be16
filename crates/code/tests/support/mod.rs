//! Assembled functions, cut into blocks as QEMU translates them.

use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory};
use nearmiss_code::CodeMap;
use nearmiss_record::code::CodeBlock;
use nearmiss_record::units::InsnId;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A file of assembled functions.
pub struct Assembled {
    vaddr: u64,
    code: Vec<u8>,
    labels: BTreeMap<String, u64>,
}

/// The instruction that records name by its offset in the text.
fn id_at(offset: u64) -> InsnId {
    InsnId(u32::try_from(offset).unwrap() * 10)
}

impl Assembled {
    /// From a source beside the tests.
    pub fn new(source: &str) -> Assembled {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let from = format!("{}/tests/functions/{source}", env!("CARGO_MANIFEST_DIR"));
        let done = Command::new("cc").args(["-nostdlib", "-static", "-no-pie", "-o"]).arg(&program).arg(from).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let file = std::fs::read(&program).unwrap();
        let file = object::File::parse(&*file).unwrap();
        let text = file.section_by_name(".text").unwrap();
        let labels = file.symbols().map(|symbol| (symbol.name().unwrap().to_owned(), symbol.address())).collect();
        Assembled { vaddr: text.address(), code: text.data().unwrap().to_vec(), labels }
    }

    /// The id of the instruction behind a label.
    pub fn id(&self, label: &str) -> InsnId {
        id_at(self.labels[label] - self.vaddr)
    }

    /// A map of all blocks that begin at the text's begin, behind a branch or at a branch's target.
    pub fn map(&self) -> CodeMap {
        let mut map = CodeMap::default();
        for start in self.starts() {
            self.add(&mut map, start);
        }
        map
    }

    fn starts(&self) -> BTreeSet<u64> {
        let mut starts = BTreeSet::from([self.vaddr]);
        let mut decoder = Decoder::with_ip(64, &self.code, self.vaddr, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if instruction.flow_control() != FlowControl::Next {
                starts.insert(instruction.next_ip());
                starts.insert(instruction.near_branch_target());
            }
        }
        starts.into_iter().filter(|start| (self.vaddr..self.vaddr + self.code.len() as u64).contains(start)).collect()
    }

    /// Adds the block that begins at an address.
    pub fn add(&self, map: &mut CodeMap, start: u64) {
        let code = &self.code[(start - self.vaddr) as usize..];
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let mut factory = InstructionInfoFactory::new();
        let mut named = Vec::new();
        while decoder.can_decode() {
            let offset = decoder.position();
            let instruction = decoder.decode();
            if offset == 0 || !factory.info(&instruction).used_memory().is_empty() {
                named.push((offset as u16, id_at(instruction.ip() - self.vaddr)));
            }
            if instruction.flow_control() != FlowControl::Next {
                break;
            }
        }
        let payload = CodeBlock::encode(start, &named, &code[..decoder.position()]);
        map.add(&CodeBlock::decode(start, &payload).unwrap());
    }
}
