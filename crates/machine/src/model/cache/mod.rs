//! One cache: frames in flat arrays, replacement, shadow, and the history of every line it saw.

mod ahead;
pub(in crate::model) mod blame;
pub(crate) mod bytes;
pub(in crate::model) mod frame;
pub(in crate::model) mod history;
pub(in crate::model) mod indexing;
pub(crate) mod neighbours;
mod reasons;
pub(crate) mod replacement;
pub(in crate::model) mod shadow;
pub(in crate::model) mod spot;

use crate::model::cache::blame::Blames;
use crate::model::cache::frame::{Frame, SetCounts, SetState};
use crate::model::cache::history::{History, Standing};
use crate::model::cache::indexing::Indexing;
use crate::model::cache::neighbours::Neighbours;
use crate::model::cache::replacement::ReplacementState;
use crate::model::cache::shadow::{NONE, Shadow};
use crate::model::cache::spot::Spot;
use crate::model::fast::plan::{Config, Instance, PAGE_LOG2};
use crate::model::quick_map::QuickMap;
use crate::model::stream::misses::Misses;
use nearmiss_record::machine::{Inclusion, Index};
use nearmiss_record::model::{ByClass, MissClass};

/// The line differs from memory and this copy answers for it.
pub(crate) const DIRTY: u8 = 1;
/// Stores need no request to other caches.
pub(crate) const WRITABLE: u8 = 2;
/// Referenced again after it had left the most-recently-used place.
pub(crate) const REUSED: u8 = 4;

const EMPTY: Frame = Frame { address: 0, line: NONE, page: 0, insn: 0, displaced: NONE, blamed: NONE };

/// Bytes that stay in this machine's own caches without being fetched ahead.
const AT_HAND_BYTES: usize = 1 << 17;

/// Why a line is not there, by [`Standing`] and whether the shadow has it; of a line that another took, its bytes decide.
const CLASSES: [[MissClass; 2]; 8] = {
    let mut classes = [[MissClass::Capacity, MissClass::Conflict]; 8];
    classes[Standing::Never as usize] = [MissClass::Compulsory; 2];
    classes[Standing::Victim as usize] = [MissClass::InclusionVictim; 2];
    classes
};

/// A lookup that missed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    pub class: MissClass,
    /// History of the line, before the lookup.
    pub history: History,
}

/// A line that left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removed {
    pub address: u64,
    pub page: u32,
    pub insn: u32,
    pub dirty: bool,
}

pub(crate) struct Cache {
    pub line_log2: u32,
    pub level: usize,
    /// Cycles until a line that the cache has is there.
    pub latency_cycles: u64,
    pub exclusive: bool,
    pub inclusive: bool,
    /// Index of the cache behind this cache.
    pub parent: Option<usize>,
    /// Victims go to the cache behind this cache, which is exclusive.
    pub victims_go_on: bool,
    /// The sets go by virtual bits above the page offset.
    by_vaddr: bool,
    /// Worth fetching ahead.
    pub far: bool,
    /// Number of a page's last line.
    last_in_page: u32,
    indexing: Indexing,
    ways: usize,
    frames: Vec<Frame>,
    /// Flags by frame, beside it: all that a hit changes of a frame, and a small part of the whole.
    flags: Vec<u8>,
    pub sets: Vec<SetCounts>,
    states: Vec<SetState>,
    order: ReplacementState,
    neighbours: Option<Neighbours>,
    /// Keeps the reasons why lines are not there.
    reasons: bool,
    shadow: Shadow,
    history: Vec<History>,
    taken: QuickMap<u32, u128>,
    pub blames: Blames,
    pub hits: u64,
    pub fills: u64,
    pub dirty_evictions: u64,
    /// References that missed.
    pub misses: Misses,
    /// Lines missed by second halves of references that had missed before.
    pub missed_again: ByClass,
}

impl Cache {
    /// Returns the cache of `instance`. `virtual_tags`: its lines are tagged by the address that indexes them.
    pub fn new(config: &Config, instance: &Instance, latency_cycles: u32, virtual_tags: bool, reasons: bool) -> Self {
        let (sets, ways) = (config.sets as usize, config.ways);
        let frames = sets * ways;
        let order = ReplacementState::new(config.replacement, sets, ways, config.seed, instance.number);
        let state = SetState { order: order.unused(ways), ..SetState::default() };
        Cache {
            line_log2: config.line_log2,
            level: config.level,
            latency_cycles: u64::from(latency_cycles),
            exclusive: config.inclusion == Inclusion::Exclusive,
            inclusive: config.inclusion == Inclusion::Inclusive,
            parent: instance.parent,
            victims_go_on: false,
            by_vaddr: config.index == Index::Virtual && !config.index_within_page() && !virtual_tags,
            far: false,
            last_in_page: (1 << (PAGE_LOG2 - config.line_log2)) - 1,
            indexing: Indexing::new(config),
            ways,
            frames: vec![EMPTY; frames],
            flags: vec![0; frames],
            sets: vec![SetCounts::default(); sets],
            states: vec![state; sets],
            order,
            neighbours: Neighbours::new(config.others_period_cycles, frames),
            reasons,
            shadow: Shadow::new(frames),
            history: Vec::new(),
            taken: QuickMap::default(),
            blames: Blames::new(),
            hits: 0,
            fills: 0,
            dirty_evictions: 0,
            misses: Misses::default(),
            missed_again: ByClass::default(),
        }
    }

    /// Makes room for the lines of another page, given its indexing address.
    pub fn add_page(&mut self, page_address: u64) -> Spot {
        let first = self.history.len();
        self.history.resize(first + self.last_in_page as usize + 1, History::default());
        let lines = self.history.len();
        let bytes = lines * size_of::<History>() + lines.min(self.frames.len()) * size_of::<Frame>();
        self.far = bytes > AT_HAND_BYTES;
        Spot::new(first as u32, self.indexing.base(page_address))
    }

    /// A line may be in another set than the one it is looked up in.
    pub fn has_synonyms(&self) -> bool {
        self.by_vaddr
    }

    #[inline]
    fn number_in_page(&self, address: u64) -> u32 {
        (address >> self.line_log2) as u32 & self.last_in_page
    }

    /// Returns the history of the line of `address`, given its page's `spot`.
    #[inline]
    pub fn line_of(&self, spot: Spot, address: u64) -> u32 {
        spot.first_line() + self.number_in_page(address)
    }

    /// Returns the set of the line of `address`, given its page's `spot`.
    #[inline]
    pub fn set_of(&self, spot: Spot, address: u64, vaddr: u64) -> usize {
        if self.by_vaddr {
            return self.indexing.set_of(vaddr);
        }
        self.indexing.set(spot.base, self.number_in_page(address))
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

    /// The frame of `set` that holds a line. A synonym may be present in another set: it does not hit.
    #[inline]
    fn frame_in(&self, set: usize, history: History) -> Option<usize> {
        let frame = history.value() as usize;
        let here = !self.by_vaddr || (set * self.ways..(set + 1) * self.ways).contains(&frame);
        (history.standing() == Standing::Present && here).then_some(frame)
    }

    /// Handles a first-level hit completely, if it changes nothing elsewhere: `false` leaves all untouched. `wanted`
    /// are the flags a store needs, `gives` those that it leaves.
    #[inline(always)]
    pub fn hit(&mut self, set: usize, line: u32, wanted: u8, gives: u8) -> bool {
        let frame = self.frame_in(set, self.history(line));
        frame.is_some_and(|frame| self.hit_in(frame, set, line, wanted, gives))
    }

    #[inline]
    fn hit_in(&mut self, frame: usize, set: usize, line: u32, wanted: u8, gives: u8) -> bool {
        if gives != 0 {
            let flags = &mut self.flags[frame];
            if *flags & wanted != wanted {
                return false;
            }
            *flags |= gives;
        }
        self.hits += 1;
        self.refer(set, frame);
        if self.reasons && !self.shadow.is_newest(line) {
            self.shadow_request(line);
        }
        true
    }

    /// A reference to the line in `frame`: recency, and whether it comes back.
    #[inline]
    fn refer(&mut self, set: usize, frame: usize) {
        let state = &mut self.states[set];
        if state.recent != frame as u32 {
            state.recent = frame as u32;
            self.flags[frame] |= REUSED;
            self.order.hit(&mut state.order, frame, frame - set * self.ways);
        } else if let ReplacementState::Srrip { .. } = self.order {
            self.order.hit(&mut state.order, frame, frame - set * self.ways);
        }
    }

    /// Looks a line up, with all that a request changes; `Err`: why it is not there. `line` is its history, `wanted`
    /// returns the bytes requested.
    #[inline(always)]
    pub fn look_up(&mut self, set: usize, line: u32, wanted: impl FnOnce() -> u128) -> Result<(), Missed> {
        let (shadowed, history) = self.shadow_request(line);
        if let Some(frame) = self.frame_in(set, history) {
            self.hits += 1;
            self.refer(set, frame);
            self.neighbours.iter_mut().for_each(|neighbours| neighbours.used(frame));
            return Ok(());
        }
        let standing = history.standing();
        let class = if standing == Standing::Taken {
            self.sharing(line, wanted())
        } else {
            CLASSES[standing as usize][usize::from(shadowed)]
        };
        Err(Missed { class, history })
    }

    #[cold]
    fn sharing(&mut self, line: u32, wanted: u128) -> MissClass {
        let written = self.taken.remove(&line).unwrap_or(0);
        if written & wanted != 0 { MissClass::TrueSharing } else { MissClass::FalseSharing }
    }

    /// Takes the line out of its frame; its history then has this standing.
    pub fn take_out(&mut self, frame: usize, standing: Standing) -> Removed {
        let gone = std::mem::replace(&mut self.frames[frame], EMPTY);
        let left = self.leave(frame, gone, self.flags[frame]);
        self.states[frame / self.ways].used -= 1;
        self.history[gone.line as usize].stands(standing, 0);
        left
    }

    /// Lets the caller choose the way that each line takes in its set, by [`Cache::choose_way`] before it is brought in.
    pub fn let_caller_choose(&mut self) {
        self.order = ReplacementState::ByCaller { way: 0 };
    }

    /// Sets the way that the next line takes in `set`, and whether the line there was used again. No effect on a cache
    /// that picks its own ways.
    #[inline]
    pub fn choose_way(&mut self, set: usize, way: usize, reused: bool) {
        if let ReplacementState::ByCaller { way: next } = &mut self.order {
            *next = way.min(self.ways - 1);
            self.flags[set * self.ways + *next] |= u8::from(reused) * REUSED;
        }
    }

    /// Brings a line in. Returns the line that had to go. Its shadow is not concerned.
    #[inline(always)]
    pub fn fill(&mut self, set: usize, address: u64, line: u32, page: u32, insn: u32, flags: u8) -> Option<Removed> {
        let ways = self.ways;
        let base = set * ways;
        self.fills += 1;
        let address = address >> self.line_log2 << self.line_log2;
        let mut new = Frame { address, line, page, insn, displaced: NONE, blamed: NONE };
        let state = &mut self.states[set];
        let empty = match self.order {
            ReplacementState::ByCaller { way } => (self.frames[base + way].line == NONE).then_some(way),
            _ if state.used as usize == ways => None,
            _ => self.frames[base..base + ways].iter().position(|f| f.line == NONE),
        };
        if let Some(way) = empty {
            state.used += 1;
            let frame = base + way;
            self.neighbours.iter_mut().for_each(|neighbours| neighbours.used(frame));
            state.recent = frame as u32;
            self.order.filled(&mut state.order, frame, way);
            self.history[line as usize].stands(Standing::Present, frame as u32);
            self.frames[frame] = new;
            self.flags[frame] = flags;
            return None;
        }
        let frame = base + self.order.replace(&mut state.order, base, ways);
        self.neighbours.iter_mut().for_each(|neighbours| neighbours.used(frame));
        state.recent = frame as u32;
        let place = &mut self.frames[frame];
        if self.reasons {
            new.displaced = place.line;
        }
        let gone = std::mem::replace(place, new);
        let its_flags = std::mem::replace(&mut self.flags[frame], flags);
        let left = self.leave(frame, gone, its_flags);
        let (standing, value) = if self.reasons { (Standing::EvictedBy, frame as u32) } else { (Standing::Evicted, 0) };
        self.history[gone.line as usize].stands(standing, value);
        self.history[line as usize].stands(Standing::Present, frame as u32);
        self.dirty_evictions += u64::from(left.dirty);
        Some(left)
    }

    /// Whether others bring lines in, too.
    #[inline]
    pub fn has_neighbours(&self) -> bool {
        self.neighbours.is_some()
    }

    /// Gives up the line of `set` that was used longest ago, if others have pushed it out by now.
    pub fn pushed_out(&mut self, set: usize, now_cycles: u64) -> Option<Removed> {
        let neighbours = self.neighbours.as_mut()?;
        neighbours.pass(now_cycles);
        let (base, used) = (set * self.ways, self.states[set].used as usize);
        let mut oldest_first = self.order.oldest_first(self.states[set].order, self.ways).map(|way| base + way);
        let frame = oldest_first.find(|frame| self.frames[*frame].line != NONE)?;
        neighbours.took(set, frame, self.ways + 1 - used).then(|| self.give_up(frame))
    }

    /// Gives up a line that was not used since the latest pause of the recording, and that others pushed out meanwhile.
    pub fn pushed_out_in_pause(&mut self, line: u32) -> Option<Removed> {
        let frame = self.frame_of(line)?;
        let is_older = self.neighbours.as_ref().is_some_and(|neighbours| !neighbours.is_of_this_part(frame));
        is_older.then(|| self.give_up(frame))
    }

    /// Gives up a line to others.
    fn give_up(&mut self, frame: usize) -> Removed {
        self.shadow_remove(self.frames[frame].line);
        let left = self.take_out(frame, Standing::Evicted);
        self.dirty_evictions += u64::from(left.dirty);
        left
    }

    /// A part begins behind a pause of the recording.
    pub fn pause(&mut self) {
        self.neighbours.iter_mut().for_each(Neighbours::pause);
    }

    /// Takes in a nearer cache's victim: an exclusive cache's way of being filled.
    pub fn insert_victim(&mut self, set: usize, left: Removed, line: u32) -> Option<Removed> {
        self.shadow_touch(line);
        match self.frame_of(line) {
            Some(frame) => {
                self.flags[frame] |= u8::from(left.dirty) * DIRTY;
                None
            }
            None => self.fill(set, left.address, line, left.page, left.insn, u8::from(left.dirty) * DIRTY),
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

    /// Handles another CPU's write to these bytes of the line. Returns whether this cache must see the next write too.
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

    /// Whether another CPU's access to the line changes anything here: a read does where the line is, a write also where
    /// it was, and where the shadow has it.
    #[inline]
    pub fn is_affected(&self, line: u32, write: bool) -> bool {
        match self.history(line).standing() {
            Standing::Present => true,
            Standing::Away | Standing::Taken => write,
            _ => write && self.reasons,
        }
    }

    /// Records that other CPUs wrote these bytes of a line earlier than was known.
    pub fn learned_written(&mut self, line: u32, mask: u128) {
        if self.history(line).standing() == Standing::Taken {
            *self.taken.entry(line).or_insert(0) |= mask;
        }
    }

    /// Throws out the copy of a line that a non-temporal store of the cache's own CPU wrote.
    pub fn thrown_out(&mut self, line: u32) {
        self.shadow_remove(line);
        if let Some(frame) = self.frame_of(line) {
            self.take_out(frame, Standing::Evicted);
        }
    }

    #[inline]
    pub fn flags(&self, frame: usize) -> u8 {
        self.flags[frame]
    }

    #[inline]
    pub fn set_flags(&mut self, frame: usize, add: u8, remove: u8) {
        self.flags[frame] = self.flags[frame] & !remove | add;
    }

    /// Lookups that missed.
    pub fn line_misses(&self) -> ByClass {
        let references = self.misses.tally();
        std::array::from_fn(|class| references.class(MissClass::ALL[class]) + self.missed_again[class])
    }

    /// The window's end decides every fate that is open.
    pub fn close(&mut self) {
        for frame in 0..self.frames.len() {
            let Frame { line, insn, blamed, .. } = self.frames[frame];
            if line != NONE && blamed != NONE && self.flags[frame] & REUSED == 0 {
                self.blames.add(insn, blamed);
            }
        }
        self.blames.count();
    }
}
