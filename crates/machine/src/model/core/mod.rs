//! Time that a core waits for its references.
//!
//! # The interval model
//! A core with a window in its machine file goes on behind a miss until the window is full (Karkhanis and Smith,
//! ISCA 2004; Eyerman and others, ACM TOCS 27(2), 2009). So a miss at instruction `n` makes the core wait only if the
//! line comes later than the core would begin instruction `n + window`.
//!
//! - A load begins when the core reaches the load, when its address is known, and when a fill buffer is free. The
//!   address is known when the loads behind it have their values ([`nearmiss_code::Origin`]) and what is computed from
//!   them is done, loads that hit between them included ([`values`]). So misses that follow one another in memory wait
//!   one by one, and others wait together.
//! - A line that a load brings takes some of the core's time even where its latency is hidden (`fill_cycles`), if the
//!   latest lines went into the same set: a set takes one line after another, and sets work side by side.
//! - A load that hits waits if its page is not at hand: for the page and, like any load, for the first level.
//! - A walk of the page table takes the machine's figure, and waits for the line of its entry ([`page_table`]). Walks side
//!   by side begin so long one behind the other as the machine file has it.
//! - A load that hits a line on its way has its value when the line comes. Only hits that are looked at count so: all of
//!   them where a policy moves fields, else those that wait for their page.
//! - A line that was written past the caches a moment ago comes when it has been to memory: all of its latency counts,
//!   no prefetcher runs ahead of it, and such lines come one after another.
//! - A load that continues a stream has been fetched ahead: it takes the time of its source, no latency, but for the
//!   stream's first lines, which are on their way.
//! - A line that was fetched with a missed one around it comes soon behind that one ([`streams`]).
//! - No source gives lines faster than it gives those of a stream, nor a bank of the second level faster than its own
//!   lines, and a line takes longer where the first level gives up a modified one for it ([`supply`]).
//! - A store waits in the store buffer. Stores leave in order, and the core waits where the buffer is full. Stores to
//!   lines that are pushed out before their turn, by stores or by loads that run ahead, leave one by one. So do stores
//!   to lines that other CPUs store to meanwhile; behind a load of the line the core waits for such a store at once.
//! - An atomic waits for the stores before it, and the core waits for the atomic; a core that requests the lines of
//!   atomics ahead has them as early as those of loads.
//! - A line that several CPUs use in turn takes no fill buffer and no latency: the machine file has the cost of each
//!   access to such a line ([`contended`]).
//! - A line of the code is requested when the front end comes to it, some instructions ahead of the core. If the line
//!   comes late, the core stops at once, but for what it would have waited for an older load anyway.
//! - A branch that was predicted wrongly waits for its value, and the core for the branch: later
//!   instructions begin then, but for loads that the wrong way has as well ([`wrong_path`]). The recording has those that a predictor of the usual kind gets wrong (`native/tap/predictor.c`).
//!
//! A wait is charged to the reference that causes it when the stream delivers the reference, though the core gets there
//! a window later. Waits charged ahead are remembered, so that references within the window begin when they really do.
//!
//! A core without a window waits for a share of each miss, as `overlap` in its machine file specifies.

mod contended;
mod crowded;
mod front_end;
mod interval;
mod leaving;
mod loops;
mod mispredicted;
mod own_bytes;
mod page_table;
mod streams;
mod supply;
mod translation;
mod uses;
mod values;
mod wrong_path;

pub(in crate::model) use interval::{Interval, Waiting};
pub(in crate::model) use mispredicted::{Decided, Redirected};
pub(crate) use translation::Translation;

use nearmiss_record::machine::Machine;
use nearmiss_record::model::Translation as Translated;
use nearmiss_record::policy::PagePolicy;

/// A time or a span in 1/65536 cycles.
pub(in crate::model) type Ticks = u64;

/// Ticks of whole cycles.
pub(in crate::model) const fn ticks(cycles: u64) -> Ticks {
    cycles << 16
}

/// Ticks of parts of cycles.
fn part(cycles: f64) -> Ticks {
    (cycles.max(0.0) * 65536.0).round() as Ticks
}

/// Model of one CPU's hidden misses.
#[derive(Clone, Debug)]
pub(in crate::model) enum Core {
    /// Some share of each is hidden.
    Share {
        /// Share that is not hidden, in 1/65536.
        shown: u64,
    },
    /// See the module's text.
    Interval(Box<Interval>),
}

impl Core {
    /// The core of a machine, with user memory in pages of these sizes.
    pub fn new(machine: &Machine, pages: &PagePolicy) -> Self {
        match &machine.core {
            Some(core) => Core::Interval(Box::new(Interval::new(machine, core, pages))),
            None => Core::Share { shown: ((1.0 - machine.overlap.clamp(0.0, 1.0)) * 65536.0).round() as u64 },
        }
    }

    /// A reference to data: whether it waits for its page, be it a hit or not.
    #[inline(always)]
    pub fn looks_up(&mut self, vaddr: u64, paddr: u64, space: u64) -> bool {
        match self {
            Core::Share { .. } => false,
            Core::Interval(interval) => interval.looks_up(vaddr, paddr, space),
        }
    }

    /// A store is put behind the others: whether it may wait for them, be it a hit or not.
    #[inline(always)]
    pub fn buffers(&mut self, vaddr: u64, instructions: u64) -> bool {
        match self {
            Core::Share { .. } => false,
            Core::Interval(interval) => interval.buffers(vaddr, instructions),
        }
    }

    /// A load or store: whether it may wait for a line that another CPU has given up a moment ago, be it a hit or not.
    #[inline(always)]
    pub fn contends(&self, vaddr: u64) -> bool {
        match self {
            Core::Share { .. } => false,
            Core::Interval(interval) => interval.contends(vaddr),
        }
    }

    /// Pages looked up; `None`: it is not known how.
    pub fn translated(&self) -> Option<Translated> {
        match self {
            Core::Share { .. } => None,
            Core::Interval(interval) => interval.translated(),
        }
    }

    /// Returns the waits behind a branch that was predicted wrongly.
    pub fn mispredicts(&mut self, branch: &Decided<'_>) -> Redirected {
        match self {
            Core::Share { .. } => Redirected::default(),
            Core::Interval(interval) => interval.mispredicts(branch),
        }
    }

    /// Returns the ticks charged that have not come at this instruction.
    #[inline]
    pub fn ahead(&mut self, instructions: u64) -> Ticks {
        match self {
            Core::Share { .. } => 0,
            Core::Interval(interval) => interval.ahead(instructions),
        }
    }
}

impl Default for Core {
    fn default() -> Self {
        Core::Share { shown: 65536 }
    }
}

#[cfg(test)]
mod tests {
    use nearmiss_record::machine::{Contended, Core};

    /// A core for tests: a window of 100 instructions and four fill buffers.
    pub(super) fn core() -> Core {
        Core {
            window_instructions: 100,
            fill_buffers: 4,
            store_buffer: 20,
            width: 4,
            forwarding_cycles: 5,
            mispredict_cycles: 15,
            fetch_ahead_instructions: 0,
            crowded_store_cycles: 9,
            crowded_addition_cycles: 21,
            crowded_beside_cycles: None,
            crowded_half_lines: None,
            second_level: None,
            contended_store_cycles: [20, 70],
            fill_cycles: 0.0,
            contended: Some(Contended {
                store_cycles: [8, 40, 60],
                atomic_cycles: [30, 50, 60],
                load_cycles: [3, 5, 6],
                lone_addition_cycles: Some(2),
                between_stores_cycles: Some(60),
                spaced_addition_cycles: None,
                far_addition_cycles: Some(32),
                far_load_cycles: Some(160),
                needed_addition_cycles: Some(96),
                needed_load_cycles: Some(64),
            }),
            atomics_ahead: false,
            reread_cycles: None,
        }
    }
}
