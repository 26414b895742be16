//! One cache as its counts need it: which lines it has, which of them are modified, which goes next.

use crate::hashing;
use crate::model::cache::replacement::ReplacementState;
use crate::model::fast::plan::{Config, Instance};
use crate::model::stream::misses::Misses;
use nearmiss_record::machine::{Inclusion, Index};

/// No line has this number.
const NONE: u64 = u64::MAX;

/// Ways of which hints are kept.
const HINTED: usize = 16;

/// A line that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    /// Modelled address of its first byte.
    pub address: u64,
    pub dirty: bool,
}

/// State of a set beside its lines.
#[derive(Clone, Copy, Debug)]
struct State {
    /// See [`ReplacementState`].
    order: u64,
    /// Hints of the line that each of the first [`HINTED`] ways has or had.
    hints: [u64; HINTED / 8],
    used: u32,
}

impl State {
    #[inline(always)]
    fn hint(&mut self, way: usize, line: u64) {
        if let Some(hints) = self.hints.get_mut(way / 8) {
            let shift = way % 8 * 8;
            *hints = *hints & !(0xff << shift) | u64::from(hint_of(line)) << shift;
        }
    }
}

/// The index function, picked once.
enum Sets {
    /// Plain, of a power of two: the number's lower bits.
    Masked(u64),
    /// Hashed, or of another number.
    Other(Config),
}

pub(super) struct Tags {
    pub line_log2: u32,
    pub level: usize,
    pub exclusive: bool,
    pub inclusive: bool,
    /// Index of the cache behind this cache.
    pub parent: Option<usize>,
    /// Unmodified victims concern another cache too.
    pub reports_clean_victims: bool,
    sets: Sets,
    ways: usize,
    /// Number of the line by frame.
    lines: Vec<u64>,
    /// Dirty lines, by frame.
    dirty: Vec<bool>,
    states: Vec<State>,
    order: ReplacementState,
    pub hits: u64,
    pub fills: u64,
    pub dirty_evictions: u64,
    /// References that missed.
    pub misses: Misses,
    /// Lines missed by second halves of references that had missed before.
    pub missed_again: u64,
}

impl Tags {
    pub fn new(config: &Config, instance: &Instance) -> Self {
        let (sets, ways) = (config.sets as usize, config.ways);
        let order = ReplacementState::new(config.replacement, sets, ways, config.seed, instance.number);
        let plain = config.index != Index::Hashed && config.sets.is_power_of_two();
        Tags {
            line_log2: config.line_log2,
            level: config.level,
            exclusive: config.inclusion == Inclusion::Exclusive,
            inclusive: config.inclusion == Inclusion::Inclusive,
            parent: instance.parent,
            reports_clean_victims: config.inclusion == Inclusion::Inclusive,
            sets: if plain { Sets::Masked(config.sets - 1) } else { Sets::Other(config.clone()) },
            ways,
            lines: vec![NONE; sets * ways],
            dirty: vec![false; sets * ways],
            states: vec![State { order: order.unused(ways), hints: [0; HINTED / 8], used: 0 }; sets],
            order,
            hits: 0,
            fills: 0,
            dirty_evictions: 0,
            misses: Misses::default(),
            missed_again: 0,
        }
    }

    #[inline(always)]
    pub fn set_of(&self, address: u64) -> usize {
        match &self.sets {
            Sets::Masked(mask) => (address >> self.line_log2 & mask) as usize,
            Sets::Other(config) => config.set_of(address) as usize,
        }
    }

    /// The way of `set` that has the line of `address`.
    #[inline(always)]
    fn way_of(&self, set: usize, address: u64) -> Option<usize> {
        let line = address >> self.line_log2;
        let base = set * self.ways;
        if self.ways > HINTED {
            return self.lines[base..base + self.ways].iter().position(|there| *there == line);
        }
        // Checks all ways at once; comparing lines one by one reads all of their memory.
        let mut marked = alike(self.states[set].hints, hint_of(line));
        while marked != 0 {
            let way = marked.trailing_zeros() as usize;
            // Beyond the ways lie other sets' lines, which are others.
            if self.lines.get(base + way) == Some(&line) {
                return Some(way);
            }
            marked &= marked - 1;
        }
        None
    }

    /// The whole of a lookup: whether the line of `address` is in `set`. `written`: it then is modified.
    #[inline(always)]
    pub fn look_up(&mut self, set: usize, address: u64, written: bool) -> bool {
        let Some(way) = self.way_of(set, address) else { return false };
        let frame = set * self.ways + way;
        self.hits += 1;
        self.order.hit(&mut self.states[set].order, frame, way);
        if written {
            self.dirty[frame] = true;
        }
        true
    }

    /// Lets the caller choose the way that each line takes in its set, by [`Tags::choose_way`] before it is brought in.
    pub fn let_caller_choose(&mut self) {
        self.order = ReplacementState::ByCaller { way: 0 };
    }

    /// Sets the way that the next line takes. No effect on a cache that picks its own ways.
    #[inline]
    pub fn choose_way(&mut self, way: usize) {
        if let ReplacementState::ByCaller { way: next } = &mut self.order {
            *next = way.min(self.ways - 1);
        }
    }

    /// Brings the line of `address` in. Returns the line that had to go.
    #[inline(always)]
    pub fn fill(&mut self, set: usize, address: u64, dirty: bool) -> Option<Gone> {
        let base = set * self.ways;
        let line = address >> self.line_log2;
        let state = &mut self.states[set];
        self.fills += 1;
        let empty = match self.order {
            ReplacementState::ByCaller { way } => (self.lines[base + way] == NONE).then_some(way),
            _ if state.used as usize == self.ways => None,
            _ => self.lines[base..base + self.ways].iter().position(|there| *there == NONE),
        };
        if let Some(way) = empty {
            state.used += 1;
            state.hint(way, line);
            self.order.filled(&mut state.order, base + way, way);
            (self.lines[base + way], self.dirty[base + way]) = (line, dirty);
            return None;
        }
        let way = self.order.replace(&mut state.order, base, self.ways);
        state.hint(way, line);
        let frame = base + way;
        let line = std::mem::replace(&mut self.lines[frame], line);
        let dirty = std::mem::replace(&mut self.dirty[frame], dirty);
        self.dirty_evictions += u64::from(dirty);
        Some(Gone { address: line << self.line_log2, dirty })
    }

    /// Takes the line of `address` out, if it is there; whether it was modified.
    pub fn take_out(&mut self, address: u64) -> bool {
        let set = self.set_of(address);
        let Some(way) = self.way_of(set, address) else { return false };
        let frame = set * self.ways + way;
        self.lines[frame] = NONE;
        self.states[set].used -= 1;
        std::mem::take(&mut self.dirty[frame])
    }

    /// The line of `address` is modified, if it is there; whether it is.
    pub fn modify(&mut self, address: u64, dirty: bool) -> bool {
        let set = self.set_of(address);
        let Some(way) = self.way_of(set, address) else { return false };
        self.dirty[set * self.ways + way] |= dirty;
        true
    }
}

/// Returns a byte that differs for most lines of a set.
#[inline(always)]
fn hint_of(line: u64) -> u8 {
    hashing::place(line, u8::BITS) as u8
}

/// Returns the ways with this hint, a bit each.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn alike(hints: [u64; HINTED / 8], hint: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    // SAFETY: SSE2 is part of x86-64, and no memory is touched.
    unsafe {
        let there = _mm_set_epi64x(hints[1].cast_signed(), hints[0].cast_signed());
        _mm_movemask_epi8(_mm_cmpeq_epi8(there, _mm_set1_epi8(hint.cast_signed()))).cast_unsigned()
    }
}

/// Returns the ways with this hint, a bit each.
#[cfg(not(target_arch = "x86_64"))]
fn alike(hints: [u64; HINTED / 8], hint: u8) -> u32 {
    let bytes = hints.into_iter().flat_map(u64::to_le_bytes);
    bytes.enumerate().fold(0, |marked, (way, there)| marked | u32::from(there == hint) << way)
}
