//! One cache: frames in flat arrays, replacement, shadow, and the history of every line it met.

use super::frame::{Frame, SetCounts};
use super::history::{History, QuickMap, Standing};
use super::plan::{Config, PAGE_LOG2};
use super::prefetch::prefetch;
use super::replacement::Order;
use super::shadow::{NONE, Shadow};
use nearmiss_record::machine::Inclusion;
use nearmiss_record::model::{ByClass, LevelTally, MissClass};

/// The line differs from memory and this copy answers for it.
pub(crate) const DIRTY: u8 = 1;
/// Stores need ask nobody.
pub(crate) const WRITABLE: u8 = 2;
/// Referenced again after it had left the most-recently-used place.
pub(crate) const REUSED: u8 = 4;

const EMPTY: u64 = u64::MAX;
/// Blames that wait.
const BLAMES: usize = 1024;

/// A line that left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub address: u64,
    pub page: u32,
    pub insn: u32,
    pub dirty: bool,
}

/// What a lookup found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    pub set: u32,
    /// The frame, or why there is none.
    pub found: Result<usize, MissClass>,
}

pub(crate) struct Cache {
    pub line_log2: u32,
    pub exclusive: bool,
    pub inclusive: bool,
    pub set_mask: Option<u64>,
    sets_ways: usize,
    tags: Vec<u64>,
    frames: Vec<Frame>,
    pub sets: Vec<SetCounts>,
    order: Order,
    shadow: Shadow,
    history: Vec<History>,
    taken: QuickMap<u32, u128>,
    pub pollution: QuickMap<u64, u64>,
    /// Blames not yet in `pollution`: counted together, their visits to the map overlap.
    blames: Vec<u64>,
    pub accesses: u64,
    pub hits: u64,
    pub fills: u64,
    pub dirty_evictions: u64,
    pub line_misses: ByClass,
    pub references: LevelTally,
}

impl Cache {
    pub fn new(config: &Config, number: u32) -> Self {
        let (sets, ways) = (config.sets as usize, config.ways);
        let frames = sets * ways;
        let frame = Frame { line: 0, page: 0, insn: 0, displaced: NONE, blamed: NONE, node: NONE, flags: 0 };
        Cache {
            line_log2: config.line_log2,
            exclusive: config.inclusion == Inclusion::Exclusive,
            inclusive: config.inclusion == Inclusion::Inclusive,
            set_mask: (config.index_within_page() && config.sets.is_power_of_two()).then_some(config.sets - 1),
            sets_ways: ways,
            tags: vec![EMPTY; frames],
            frames: vec![frame; frames],
            sets: vec![SetCounts::default(); sets],
            order: Order::new(config.replacement, sets, ways, config.seed, number),
            shadow: Shadow::new(frames),
            history: Vec::new(),
            taken: QuickMap::default(),
            pollution: QuickMap::default(),
            blames: Vec::with_capacity(BLAMES),
            accesses: 0,
            hits: 0,
            fills: 0,
            dirty_evictions: 0,
            line_misses: [0; 6],
            references: LevelTally::default(),
        }
    }

    /// Makes room for the lines of another page; returns its block.
    pub fn add_block(&mut self) -> u32 {
        let lines = 1usize << (PAGE_LOG2 - self.line_log2);
        let block = (self.history.len() / lines) as u32;
        self.history.resize(self.history.len() + lines, History::default());
        block
    }

    /// The history of the line of `address` in `block`.
    #[inline]
    pub fn line_of(&self, block: u32, address: u64) -> u32 {
        let shift = PAGE_LOG2 - self.line_log2;
        (block << shift) + ((address >> self.line_log2) & ((1 << shift) - 1)) as u32
    }

    #[inline]
    pub fn history(&self, line: u32) -> History {
        self.history[line as usize]
    }

    /// The frame that holds a line, wherever it lies.
    #[inline]
    pub fn frame_of(&self, line: u32) -> Option<usize> {
        let history = self.history(line);
        (history.standing() == Standing::Present).then_some(history.value() as usize)
    }

    #[inline]
    fn find(&self, set: usize, address: u64) -> Option<usize> {
        let (tag, base) = (address >> self.line_log2, set * self.sets_ways);
        let first = base + usize::from(self.sets[set].recent);
        if self.tags[first] == tag {
            return Some(first);
        }
        position(&self.tags[base..base + self.sets_ways], tag).map(|way| base + way)
    }

    /// The whole of a first-level hit, if it is one that changes nothing elsewhere: `false` leaves all untouched.
    /// `wanted` are the flags a store needs, `gives` those that it leaves.
    #[inline]
    pub fn hit(&mut self, set: usize, address: u64, wanted: u8, gives: u8) -> bool {
        let Some(frame) = self.find(set, address) else { return false };
        if self.frames[frame].flags & wanted != wanted {
            return false;
        }
        self.frames[frame].flags |= gives;
        self.accesses += 1;
        self.hits += 1;
        self.refer(set, frame);
        self.request_again(frame);
        true
    }

    /// A reference to the line in `frame`: recency, and whether it comes back.
    #[inline]
    fn refer(&mut self, set: usize, frame: usize) {
        let way = frame - set * self.sets_ways;
        if usize::from(self.sets[set].recent) != way {
            self.sets[set].recent = way as u16;
            self.frames[frame].flags |= REUSED;
            self.order.hit(set, frame, way);
        } else if let Order::Srrip { .. } = self.order {
            self.order.hit(set, frame, way);
        }
    }

    #[inline]
    fn request_again(&mut self, frame: usize) {
        let Frame { node, line, .. } = self.frames[frame];
        if self.shadow.holds(node, line) {
            self.shadow.touch(node);
        } else {
            self.shadow_insert(line);
        }
    }

    fn shadow_insert(&mut self, line: u32) {
        let node = self.shadow.insert(line);
        let history = &mut self.history[line as usize];
        history.set_node(node);
        if history.standing() == Standing::Present {
            self.frames[history.value() as usize].node = node;
        }
    }

    /// The line's node in the shadow, or [`NONE`].
    #[inline]
    fn shadow_node(&self, line: u32) -> u32 {
        let node = self.history(line).node();
        if self.shadow.holds(node, line) { node } else { NONE }
    }

    fn shadow_remove(&mut self, line: u32) {
        let node = self.shadow_node(line);
        if node != NONE {
            self.shadow.remove(node);
        }
    }

    /// The line's place in the shadow after a request for it; whether it was there. An exclusive cache hands the line
    /// on and is filled from elsewhere, and so is its shadow.
    fn shadow_request(&mut self, line: u32) -> bool {
        let node = self.shadow_node(line);
        match (node == NONE, self.exclusive) {
            (false, false) => self.shadow.touch(node),
            (false, true) => self.shadow.remove(node),
            (true, false) => self.shadow_insert(line),
            (true, true) => {}
        }
        node != NONE
    }

    /// Looks a line up, with all that a request changes. `mask` are the bytes wanted, `line` its history.
    pub fn look_up(&mut self, set: usize, line: u32, mask: u128) -> Looked {
        self.accesses += 1;
        let shadowed = self.shadow_request(line);
        // A synonym may be present in another set: it does not hit.
        let base = set * self.sets_ways;
        let found = match self.frame_of(line) {
            Some(frame) if (base..base + self.sets_ways).contains(&frame) => {
                self.hits += 1;
                self.refer(set, frame);
                Ok(frame)
            }
            _ => Err(self.classify(line, mask, shadowed)),
        };
        if let Err(class) = found {
            self.line_misses[class as usize] += 1;
        }
        Looked { set: set as u32, found }
    }

    fn classify(&mut self, line: u32, mask: u128, shadowed: bool) -> MissClass {
        match self.history(line).standing() {
            Standing::Never => MissClass::Compulsory,
            Standing::Taken if self.taken.remove(&line).unwrap_or(0) & mask != 0 => MissClass::TrueSharing,
            Standing::Taken => MissClass::FalseSharing,
            Standing::Victim => MissClass::InclusionVictim,
            _ if shadowed => MissClass::Conflict,
            _ => MissClass::Capacity,
        }
    }

    /// Counts a reference that missed here, in its set's row, and blames the line's evictor.
    pub fn count_miss(&mut self, set: u32, line: u32, class: MissClass, insn: u32) {
        let counts = &mut self.sets[set as usize];
        counts.misses += 1;
        counts.conflicts += u64::from(class == MissClass::Conflict);
        let history = self.history(line);
        match history.standing() {
            Standing::EvictedBy if self.frames[history.value() as usize].flags & REUSED == 0 => {
                self.frames[history.value() as usize].blamed = insn;
            }
            Standing::Polluted => self.blame(history.value(), insn),
            _ => {}
        }
    }

    fn blame(&mut self, polluter: u32, victim: u32) {
        self.blames.push(u64::from(polluter) << 32 | u64::from(victim));
        if self.blames.len() == BLAMES {
            self.count_blames();
        }
    }

    fn count_blames(&mut self) {
        for pair in self.blames.drain(..) {
            *self.pollution.entry(pair).or_insert(0) += 1;
        }
    }

    /// The line of a frame leaves it; its fate is decided.
    fn leave(&mut self, frame: usize) -> Left {
        let Frame { page, insn, displaced, blamed, flags, .. } = self.frames[frame];
        let reused = flags & REUSED != 0;
        if !reused && blamed != NONE {
            self.blame(insn, blamed);
        }
        if displaced != NONE {
            let history = &mut self.history[displaced as usize];
            if history.standing() == Standing::EvictedBy && history.value() == frame as u32 {
                history
                    .stands(if reused { Standing::Evicted } else { Standing::Polluted }, if reused { 0 } else { insn });
            }
        }
        let address = self.tags[frame] << self.line_log2;
        self.tags[frame] = EMPTY;
        let emptied = &mut self.frames[frame];
        (emptied.flags, emptied.node) = (0, NONE);
        (emptied.displaced, emptied.blamed) = (NONE, NONE);
        Left { address, page, insn, dirty: flags & DIRTY != 0 }
    }

    /// Takes the line out of its frame; its history then stands as said.
    pub fn take_out(&mut self, frame: usize, standing: Standing) -> Left {
        let line = self.frames[frame].line;
        let left = self.leave(frame);
        self.sets[frame / self.sets_ways].used -= 1;
        self.history[line as usize].stands(standing, 0);
        left
    }

    /// Brings a line in. Returns the line that had to go. Its shadow is not concerned.
    pub fn fill(&mut self, set: usize, address: u64, line: u32, page: u32, insn: u32, dirty: bool) -> Option<Left> {
        let ways = self.sets_ways;
        let base = set * ways;
        let full = usize::from(self.sets[set].used) == ways;
        let empty = if full { None } else { position(&self.tags[base..base + ways], EMPTY) };
        let way = match empty {
            Some(way) => {
                self.sets[set].used += 1;
                way
            }
            None => self.order.victim(set, ways),
        };
        let frame = base + way;
        let mut displaced = NONE;
        let left = if empty.is_some() {
            None
        } else {
            displaced = self.frames[frame].line;
            let left = self.leave(frame);
            self.history[displaced as usize].stands(Standing::EvictedBy, frame as u32);
            self.dirty_evictions += u64::from(left.dirty);
            Some(left)
        };
        self.fills += 1;
        self.tags[frame] = address >> self.line_log2;
        let history = &mut self.history[line as usize];
        history.stands(Standing::Present, frame as u32);
        let (node, flags) = (history.node(), if dirty { DIRTY } else { 0 });
        self.frames[frame] = Frame { line, page, insn, displaced, blamed: NONE, node, flags };
        self.sets[set].recent = way as u16;
        self.order.filled(set, frame, way);
        left
    }

    /// Takes in a nearer cache's victim: an exclusive cache's way of being filled.
    pub fn insert_victim(&mut self, set: usize, left: Left, line: u32) -> Option<Left> {
        match self.shadow_node(line) {
            NONE => self.shadow_insert(line),
            node => self.shadow.touch(node),
        }
        match self.frame_of(line) {
            Some(frame) => {
                self.frames[frame].flags |= u8::from(left.dirty) * DIRTY;
                None
            }
            None => self.fill(set, left.address, line, left.page, left.insn, left.dirty),
        }
    }

    /// An exclusive cache passes a line to a nearer one.
    pub fn hand_on(&mut self, line: u32) -> bool {
        match self.frame_of(line) {
            Some(frame) => self.take_out(frame, Standing::Away).dirty,
            None => {
                self.history[line as usize].stands(Standing::Away, 0);
                false
            }
        }
    }

    /// An outer inclusive cache gave the line up. Returns whether it was modified here.
    pub fn back_invalidate(&mut self, line: u32) -> bool {
        self.shadow_remove(line);
        match self.history(line).standing() {
            Standing::Present => {
                let frame = self.history(line).value() as usize;
                self.take_out(frame, Standing::Victim).dirty
            }
            Standing::Away => {
                self.history[line as usize].stands(Standing::Victim, 0);
                false
            }
            _ => false,
        }
    }

    /// Another CPU writes these bytes of the line. Returns whether this cache will want to know of the next write too.
    pub fn taken_by_other(&mut self, line: u32, mask: u128) -> bool {
        self.shadow_remove(line);
        match self.history(line).standing() {
            Standing::Present => {
                let frame = self.history(line).value() as usize;
                self.take_out(frame, Standing::Taken);
                self.taken.insert(line, mask);
            }
            Standing::Away => {
                self.history[line as usize].stands(Standing::Taken, 0);
                self.taken.insert(line, mask);
            }
            Standing::Taken => *self.taken.entry(line).or_insert(0) |= mask,
            _ => return false,
        }
        true
    }

    /// Others wrote these bytes earlier than was known.
    pub fn learned_written(&mut self, line: u32, mask: u128) {
        if self.history(line).standing() == Standing::Taken {
            *self.taken.entry(line).or_insert(0) |= mask;
        }
    }

    /// This CPU's own non-temporal store throws the copy out.
    pub fn thrown_out(&mut self, line: u32) {
        self.shadow_remove(line);
        if let Some(frame) = self.frame_of(line) {
            self.take_out(frame, Standing::Evicted);
        }
    }

    #[inline]
    pub fn flags(&self, frame: usize) -> u8 {
        self.frames[frame].flags
    }

    #[inline]
    pub fn set_flags(&mut self, frame: usize, add: u8, remove: u8) {
        self.frames[frame].flags = self.frames[frame].flags & !remove | add;
    }

    /// The window's end decides every fate that is open.
    pub fn close(&mut self) {
        for frame in 0..self.tags.len() {
            let Frame { insn, blamed, .. } = self.frames[frame];
            if self.tags[frame] != EMPTY && blamed != NONE && self.frames[frame].flags & REUSED == 0 {
                self.blame(insn, blamed);
            }
        }
        self.count_blames();
    }

    /// Fetches what a lookup of the line will want.
    #[inline]
    pub fn prefetch(&self, line: u32) {
        prefetch(&self.history, line as usize);
    }

    /// Fetches what a fill of the set will want, as far as it is known before. Returns address and page of the line
    /// that will have to go.
    #[inline]
    pub fn prefetch_fill(&self, set: usize) -> Option<(u64, u32)> {
        let ways = self.sets_ways;
        if usize::from(self.sets[set].used) != ways {
            return None;
        }
        let frame = set * ways + self.order.next(set, ways)?;
        let Frame { line, page, displaced, .. } = self.frames[frame];
        prefetch(&self.history, line as usize);
        prefetch(&self.history, displaced as usize);
        Some((self.tags[frame] << self.line_log2, page))
    }

    /// Fetches the set itself.
    #[inline]
    pub fn prefetch_set(&self, set: usize) {
        prefetch(&self.sets, set);
        prefetch(&self.tags, set * self.sets_ways);
        prefetch(&self.tags, (set + 1) * self.sets_ways - 1);
        self.order.prefetch(set, self.sets_ways);
    }
}

/// Where a tag is: eight at a time, without a branch each.
#[inline]
fn position(tags: &[u64], tag: u64) -> Option<usize> {
    let (eights, rest) = tags.as_chunks::<8>();
    for (i, eight) in eights.iter().enumerate() {
        let mut found = 0u32;
        for (way, &t) in eight.iter().enumerate() {
            found |= u32::from(t == tag) << way;
        }
        if found != 0 {
            return Some(i * 8 + found.trailing_zeros() as usize);
        }
    }
    rest.iter().position(|&t| t == tag).map(|way| tags.len() - rest.len() + way)
}

/// The bytes of `[address, address + size)` inside the line at `line`, as a mask.
#[inline]
pub(crate) fn mask_within(line: u64, line_log2: u32, address: u64, size: u32) -> u128 {
    let (from, to) = (address.max(line), (address + u64::from(size)).min(line + (1 << line_log2)));
    if from >= to {
        return 0;
    }
    let count = (to - from) as u32;
    let bits = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
    bits << (from - line)
}
