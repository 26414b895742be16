//! Walks of the page table to small pages, by the memory that they lead to.
//!
//! Memory of user mode could lie in pages of 2 MiB where a whole aligned block belongs to one mapping without a file.
//! For each such block the walks to it are counted by object, and so are the pages that were touched, and those that
//! were touched for the first time: the kernel cleared their frame, and nothing else was in the frame since.

mod block;
mod mappings;
mod named;

pub use named::{Reach, WalkedObject, Walks};

use super::index;
use super::names::Names;
use super::touches::Touches;
use super::tracker::USER_END;
use crate::model::Translation;
use crate::observer::{Effective, Observer, Outcome};
use block::Block;
use mappings::Mappings;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::PagePolicy;
use nearmiss_record::reference::{Control, MARK_PART, Record};
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::Symbols;
use rustc_hash::FxHashMap;

/// log₂ of the bytes of a small page, and of a large one.
const PAGE_LOG2: u32 = 12;
const LARGE_LOG2: u32 = 21;

/// Look-ups that missed the first level of translation, and walks of these to small pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LookUps {
    pub first_misses: u64,
    pub walks: u64,
}

impl std::ops::AddAssign for LookUps {
    fn add_assign(&mut self, other: Self) {
        self.first_misses += other.first_misses;
        self.walks += other.walks;
    }
}

/// State of a CPU.
struct Cpu {
    /// The latest page of user mode.
    last: u64,
    translation: Translation,
}

/// Listens to a model; see the module's text.
pub struct PageWalks {
    touches: Touches,
    cpus: Vec<Cpu>,
    mappings: Mappings,
    /// By process and number.
    blocks: FxHashMap<(u32, u64), Block>,
    /// First touches by recorded part.
    first_touches: Vec<u64>,
}

impl PageWalks {
    /// For a run on this machine; none where the machine's file has no second level of translation.
    pub fn new(machine: &Machine, symbols: &Symbols) -> Option<Self> {
        let tlb = machine.tlb.filter(|tlb| tlb.second.is_some() && machine.core.is_some())?;
        let cpu = || Cpu { last: u64::MAX, translation: Translation::new(&tlb, &PagePolicy::Recorded) };
        let touches = Touches::new(machine, symbols);
        Some(PageWalks {
            cpus: (0..touches.cpus()).map(|_| cpu()).collect(),
            touches,
            mappings: Mappings::default(),
            blocks: FxHashMap::default(),
            first_touches: vec![0],
        })
    }

    /// Whether the recording paused.
    fn in_parts(&self) -> bool {
        self.first_touches.len() > 1
    }

    /// Returns the walks by object, most first.
    pub fn walks(&self, side: &SideTables, symbols: &Symbols) -> Walks {
        named::walks(self, &Names::new(symbols, side), symbols)
    }

    #[inline]
    fn reference(&mut self, reference: &Effective) {
        let Some(at) = self.touches.data(reference) else { return };
        let (record, pid) = (reference.record, self.touches.pid(at));
        let cpu = &mut self.cpus[at];
        let before = cpu.translation.counted;
        cpu.translation.takes(record.vaddr(), record.paddr(), pid.into());
        let after = cpu.translation.counted;
        let look_ups =
            LookUps { first_misses: after.first_misses - before.first_misses, walks: after.walks - before.walks };
        if record.vaddr() >= USER_END {
            return;
        }
        let page = record.vaddr() >> PAGE_LOG2;
        if (page != cpu.last || look_ups.first_misses > 0) && self.touches.runs_command(at) {
            cpu.last = page;
            self.touched(at, record, look_ups);
        }
    }

    fn touched(&mut self, at: usize, record: Record, look_ups: LookUps) {
        let (pid, vaddr) = (self.touches.pid(at), record.vaddr());
        let is_large = self.cpus[at].translation.is_large(vaddr, record.paddr());
        let is_first = self.touches.is_first(record);
        self.first_touches.last_mut().into_iter().for_each(|touches| *touches += u64::from(is_first));
        let block = self.blocks.entry((pid, vaddr >> LARGE_LOG2)).or_default();
        block.touch(vaddr, is_first, is_large);
        if look_ups.first_misses > 0 || is_first {
            let object = self.touches.tracker.find(pid, vaddr, record.physical_page()).0;
            block.look_up(object, look_ups);
        }
    }
}

impl Observer for PageWalks {
    fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        match control {
            Control::Switch { .. } => {
                let at = index(vcpu, self.cpus.len());
                self.cpus[at].last = u64::MAX;
            }
            Control::Mark { number: MARK_PART, .. } => self.first_touches.push(0),
            _ => {}
        }
        let mappings = &mut self.mappings;
        self.touches.control(vcpu, control, |event| mappings.event(event));
    }

    fn hit(&mut self, reference: &Effective) {
        self.reference(reference);
    }

    fn miss(&mut self, reference: &Effective, _: &Outcome) {
        self.reference(reference);
    }

    fn instructions(&mut self, _: u32, _: u64) {}
}
