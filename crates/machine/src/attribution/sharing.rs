//! Lines that move between CPUs.

use super::objects::ObjectId;
use nearmiss_record::model::MissClass;
use rustc_hash::FxHashMap;

/// Most lines told apart, and most instructions a line.
const MAX_LINES: usize = 1 << 18;
const MAX_INSNS: usize = 16;

/// One line.
#[derive(Clone, Debug)]
pub(super) struct SharedLine {
    pub object: ObjectId,
    /// Of the line in the object.
    pub offset: u64,
    pub true_sharing: u64,
    pub false_sharing: u64,
    /// Instructions that missed on it, and how often.
    pub insns: Vec<(u32, u64)>,
}

/// By recorded physical address of the line.
#[derive(Debug, Default)]
pub(super) struct SharedLines {
    pub lines: FxHashMap<u64, SharedLine>,
    pub full: bool,
}

impl SharedLines {
    pub fn missed(&mut self, line: u64, class: MissClass, object: ObjectId, offset: u64, insn: u32) {
        if self.lines.len() >= MAX_LINES && !self.lines.contains_key(&line) {
            self.full = true;
            return;
        }
        let new = SharedLine { object, offset, true_sharing: 0, false_sharing: 0, insns: Vec::new() };
        let row = self.lines.entry(line).or_insert(new);
        match class {
            MissClass::TrueSharing => row.true_sharing += 1,
            _ => row.false_sharing += 1,
        }
        match row.insns.iter().position(|(id, _)| *id == insn) {
            Some(index) => row.insns[index].1 += 1,
            None if row.insns.len() < MAX_INSNS => row.insns.push((insn, 1)),
            None => {}
        }
    }
}
