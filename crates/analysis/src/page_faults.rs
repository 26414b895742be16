//! Page faults that give a command a new page: as modelled, and what the machine's own figure has beyond the model.

use nearmiss_record::model::{FunctionRow, MissClass, ModelRecord, StackRow, Tally};
use nearmiss_record::symbols::{CLEARING, PAGE_FAULT};

/// Functions that give a new page to a page fault.
const ANONYMOUS: [&str; 2] = ["do_anonymous_page", LARGE];
/// Function that gives a large page to a page fault.
const LARGE: &str = "do_huge_pmd_anonymous_page";
/// Functions of page faults that give a page of a file, or a copy of a page.
const OTHERS: [&str; 4] = ["do_fault", "do_read_fault", "filemap_map_pages", "do_wp_page"];
/// Names with which those functions begin that take pages from a command and give them back to the kernel.
const GIVING_BACK: [&str; 8] = [
    "unmap_vmas",
    "unmap_page_range",
    "zap_p",
    "tlb_finish_mmu",
    "tlb_flush_mmu",
    "__tlb_batch_free",
    "free_pages_and_swap_cache",
    "folio_remove_rmap",
];

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFaults {
    /// Pages that the kernel cleared.
    pub cleared: u64,
    /// Pages of these that were cleared for the first time.
    pub different: u64,
    /// Cycles of clearing.
    pub clearing_cycles: u64,
    /// Cycles of the page faults, clearing included.
    pub cycles: u64,
    /// Pages of the cleared ones that a page fault of their own gave out: the share of clearing below such faults, as
    /// the call stacks show it. The others are parts of large pages, or the kernel's own.
    pub one_by_one: u64,
    /// Modelled cycles of one of these: the page fault from its entry on, clearing, and giving the page back.
    pub each_cycles: u64,
    /// Cycles of one first touch of a small page that the model does not have: the machine's figure less
    /// `each_cycles`; 0 where the machine has no figure, or no page was given out one by one.
    pub beyond_model_cycles: u64,
}

impl PageFaults {
    /// Returns the page faults of a run.
    pub fn of(model: &ModelRecord) -> Self {
        let page_bytes = model.machine.memory.page_size.0.max(8);
        let clears = |row: &&FunctionRow| row.kernel && CLEARING.contains(&row.name.as_str());
        let clearing = || model.functions.iter().filter(clears).map(|row| &row.tally);
        // A line that was never in the last cache belongs to a page that was not cleared before.
        let first = |tally: &Tally| tally.levels.last().map_or(0, |level| level.class(MissClass::Compulsory));
        let line_bytes = model.machine.caches.last().map_or(64, |cache| cache.line.0);
        let faults = PageFaults {
            cleared: clearing().map(|tally| tally.stores).sum::<u64>() * 8 / page_bytes,
            different: clearing().map(first).sum::<u64>() * line_bytes / page_bytes,
            clearing_cycles: clearing().map(|tally| tally.cycles).sum(),
            cycles: model.stacks.iter().filter(|stack| Work::of(stack).gives_pages()).map(|stack| stack.cycles).sum(),
            ..PageFaults::default()
        };
        faults.priced(&model.stacks, model.machine.memory.first_touch_cycles)
    }

    /// Cycles of all first touches of small pages that the model does not have.
    pub fn beyond_cycles(&self) -> u64 {
        self.one_by_one.saturating_mul(self.beyond_model_cycles)
    }

    /// With the price of one small page: as modelled, and beyond it by the machine's figure.
    fn priced(self, stacks: &[StackRow], first_touch_cycles: Option<u32>) -> Self {
        let sum = |counts: &dyn Fn(&StackRow) -> bool| {
            stacks.iter().filter(|stack| counts(stack)).map(|stack| stack.cycles).sum::<u64>()
        };
        let clears = |stack: &StackRow| stack.frames.last().is_some_and(|frame| CLEARING.contains(&frame.as_str()));
        let of_small = sum(&|stack| clears(stack) && Work::of(stack) == Work::SmallPage);
        let share = of_small as f64 / sum(&clears).max(1) as f64;
        let one_by_one = (self.cleared as f64 * share).round() as u64;
        // Faults and unmapping of other pages count too where stacks do not keep them apart: the price is no lower.
        let modelled = sum(&|stack| matches!(Work::of(stack), Work::SmallPage | Work::Around | Work::GivingBack));
        let each_cycles = if one_by_one > 0 { modelled.div_ceil(one_by_one) } else { 0 };
        let measured = first_touch_cycles.filter(|_| one_by_one > 0).map_or(0, u64::from);
        PageFaults { one_by_one, each_cycles, beyond_model_cycles: measured.saturating_sub(each_cycles), ..self }
    }
}

/// Work of the kernel below which a stack lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// A page fault that gives a small page.
    SmallPage,
    /// A page fault that gives a large page.
    LargePage,
    /// Entry and exit of a page fault, and the search for its mapping.
    Around,
    /// Pages go back to the kernel.
    GivingBack,
    /// All other work, and page faults that give other pages.
    Other,
}

impl Work {
    fn of(stack: &StackRow) -> Work {
        let has = |names: &[&str]| stack.frames.iter().any(|frame| names.contains(&frame.as_str()));
        let gives_back = |frame: &String| GIVING_BACK.iter().any(|name| frame.starts_with(name));
        let in_fault = has(&[PAGE_FAULT]);
        match () {
            () if in_fault && has(&[LARGE]) => Work::LargePage,
            () if in_fault && (has(&ANONYMOUS) || has(&CLEARING)) => Work::SmallPage,
            () if stack.frames.iter().any(gives_back) => Work::GivingBack,
            () if in_fault && !has(&OTHERS) => Work::Around,
            () => Work::Other,
        }
    }

    fn gives_pages(self) -> bool {
        matches!(self, Work::SmallPage | Work::LargePage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[&str], cycles: u64) -> StackRow {
        let frames = frames.iter().map(|frame| (*frame).to_owned()).collect();
        StackRow { frames, misses: Vec::new(), stall_cycles: 0, cycles }
    }

    /// A hundred pages, cleared by 300 cycles each, and given out by 700 more.
    fn small_pages() -> Vec<StackRow> {
        vec![
            stack(&["main", PAGE_FAULT, "do_anonymous_page", "clear_page_rep"], 30_000),
            stack(&["main", PAGE_FAULT, "do_anonymous_page"], 50_000),
            stack(&["main", PAGE_FAULT, "lock_vma_under_rcu"], 20_000),
            stack(&["main", "munmap", "unmap_vmas"], 6_000),
            stack(&["main", "munmap", "tlb_finish_mmu", "folios_put_refs"], 4_000),
            stack(&["main"], 1_000_000),
            stack(&["main", PAGE_FAULT, "do_fault", "filemap_map_pages"], 90_000),
        ]
    }

    const CLEARED: PageFaults = PageFaults {
        cleared: 100,
        different: 100,
        clearing_cycles: 30_000,
        cycles: 80_000,
        one_by_one: 0,
        each_cycles: 0,
        beyond_model_cycles: 0,
    };

    #[test]
    fn the_machines_figure_less_faults_and_unmapping_is_beyond_the_model() {
        let priced = CLEARED.priced(&small_pages(), Some(5000));
        assert_eq!(priced, PageFaults { one_by_one: 100, each_cycles: 1100, beyond_model_cycles: 3900, ..CLEARED });
        assert_eq!(priced.beyond_cycles(), 390_000);
    }

    #[test]
    fn without_a_figure_or_above_it_nothing_is_beyond_the_model() {
        let beyond = |figure| CLEARED.priced(&small_pages(), figure).beyond_model_cycles;
        assert_eq!([None, Some(1), Some(1100), Some(1101)].map(beyond), [0, 0, 0, 1]);
    }

    #[test]
    fn parts_of_large_pages_and_pages_of_the_kernel_have_no_fault_of_their_own() {
        let mut stacks = small_pages();
        // Another 300 pages: two thirds of the clearing belong to large pages, a twelfth to the kernel.
        stacks.push(stack(&["main", PAGE_FAULT, LARGE, "clear_page_rep"], 80_000));
        stacks.push(stack(&["main", "pgd_alloc", "clear_page_rep"], 10_000));
        let priced = PageFaults { cleared: 400, ..CLEARED }.priced(&stacks, Some(5000));
        assert_eq!((priced.one_by_one, priced.each_cycles, priced.beyond_model_cycles), (100, 1100, 3900));
    }

    #[test]
    fn without_call_stacks_no_page_is_known_to_be_given_out_one_by_one() {
        assert_eq!(CLEARED.priced(&[], Some(5000)), CLEARED);
        assert_eq!(PageFaults::default().priced(&small_pages(), Some(5000)).beyond_cycles(), 0);
    }
}
