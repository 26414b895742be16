//! Objects that could be colored together, and by whom.

use super::colors::step;
use nearmiss_machine::attribution::{Alias, Crowd};
use nearmiss_record::policy::{AddressPolicy, Shifted};

const PAGE_BYTES: u64 = 4096;

/// What kind of objects they are: it decides who can color them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Thread stacks.
    Stacks,
    /// `malloc` blocks of a page and more.
    Blocks,
    /// `malloc` blocks of less than a page.
    SmallBlocks,
    /// Blocks that were asked for with an alignment, which is a promise.
    AlignedBlocks,
    /// Mappings.
    Mappings,
    /// Parts of one object, such as the rows of a matrix.
    Parts,
}

impl Class {
    /// What one remedy moves together is one subject; what its author must change is one a name.
    pub fn of_many(self) -> bool {
        matches!(self, Class::Stacks | Class::Blocks)
    }
}

/// Objects in each other's way, at one or more levels.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What they are.
    pub class: Class,
    /// One an object name and level.
    pub crowds: Vec<Crowd>,
    /// Loads and stores of them that lie at the same offset of their pages.
    pub aliased: Vec<Alias>,
    /// Of those, the objects that can be colored: first address, and the address behind the last.
    pub aliased_extents: Vec<(u64, u64)>,
    /// The program colors them itself when the environment asks it to: it was built with `nearmiss-color.h`.
    pub asks_environment: bool,
    /// Ways of the cache at whose sets they crowd.
    pub ways: u64,
}

impl Subject {
    /// Of no objects yet. `asks_environment`: whether the program asks it; `ways`: of the cache where they crowd.
    pub fn new(class: Class, asks_environment: bool, ways: u64) -> Self {
        Subject {
            class,
            crowds: Vec::new(),
            aliased: Vec::new(),
            aliased_extents: Vec::new(),
            asks_environment: asks_environment && class == Class::Mappings,
            ways,
        }
    }

    /// First address and the address behind the last of each object; ascending, disjoint.
    pub fn extents(&self) -> Vec<(u64, u64)> {
        let crowded = self.crowds.iter().flat_map(|c| c.extents.iter().map(|(start, end, _)| (*start, *end)));
        let mut all: Vec<(u64, u64)> = crowded.chain(self.aliased_extents.iter().copied()).collect();
        all.sort_unstable();
        let mut disjoint: Vec<(u64, u64)> = Vec::new();
        for (start, end) in all {
            match disjoint.last_mut() {
                // Memory that was given back and handed out again in other pieces.
                Some(last) if start < last.1 => last.1 = last.1.max(end),
                _ => disjoint.push((start, end)),
            }
        }
        disjoint
    }

    /// Whether whole objects get in each other's way, rather than parts of one.
    pub fn whole_objects(&self) -> bool {
        !matches!(self.class, Class::Parts) && !self.pieces_of_one()
    }

    fn pieces_of_one(&self) -> bool {
        self.class == Class::Mappings
            && !self.crowds.is_empty()
            && self.crowds.iter().all(|c| c.extents.len() as u64 <= self.ways)
    }

    /// Bytes of the pieces at whose same offset the lines lie.
    pub fn alignment_bytes(&self) -> u64 {
        self.crowds.iter().max_by_key(|c| c.misses).map_or(PAGE_BYTES, |c| c.alignment_bytes)
    }

    /// Lines in use at a time at the same offset of their pieces: objects, or pieces of the one object.
    pub fn competing_lines(&self) -> u64 {
        if self.whole_objects() {
            return self.extents().len() as u64;
        }
        let Some(heaviest) = self.crowds.iter().max_by_key(|c| c.misses) else {
            return self.extents().len() as u64;
        };
        let pressing = (heaviest.lines_a_set * heaviest.sets).round() as u64;
        let mut pieces: Vec<u64> = heaviest.lines.iter().map(|line| line / heaviest.alignment_bytes).collect();
        pieces.dedup();
        // Where each piece has one line in use, they can be counted, unless some of them go by another name; else what
        // presses on the sets at a time counts, but no more than there are pieces.
        let all = pieces.len() as u64;
        match pieces.len() == heaviest.lines.len() {
            true if all * 10 >= pressing * 9 => all,
            true => pressing,
            false => pressing.min(all),
        }
    }

    /// The policy that colors them.
    pub fn policy(&self, colors: u64, line_bytes: u64) -> AddressPolicy {
        if colors <= 1 {
            return AddressPolicy::Recorded;
        }
        let extents = self.extents();
        if !self.whole_objects() {
            return AddressPolicy::Color {
                ranges: extents,
                align: self.alignment_bytes(),
                colors: colors as u32,
                line: line_bytes as u32,
            };
        }
        let shifted = |(number, (from, to)): (usize, (u64, u64))| {
            let bytes = (number as u64 * step(colors) % colors * line_bytes) as i64;
            Shifted { from, to, by: if self.class == Class::Stacks { -bytes } else { bytes } }
        };
        AddressPolicy::Shift { objects: extents.into_iter().enumerate().map(shifted).collect() }
    }

    /// Bytes of memory that the colors take: on average half the largest shift an object.
    pub fn memory_bytes(&self, colors: u64, line_bytes: u64) -> u64 {
        let objects = if self.whole_objects() { self.extents().len() as u64 } else { self.competing_lines() };
        objects * (colors.saturating_sub(1)) * line_bytes / 2
    }
}
