//! Objects that could be colored together, and by whom.

use super::colors::step;
use nearmiss_machine::attribution::{Alias, Crowd};
use nearmiss_record::policy::{AddressPolicy, Shifted};
use std::collections::BTreeMap;

const PAGE_BYTES: u64 = 4096;
/// Share of a crowd's misses beside a line of the same object from which on it is the object's pieces that crowd.
const OF_PIECES: f64 = 0.5;

/// Whether pieces of one object are in each other's way.
pub fn is_of_pieces(crowd: &Crowd) -> bool {
    crowd.within_one >= OF_PIECES
}

/// Kind of the objects, which decides who can color them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Thread stacks.
    Stacks,
    /// `malloc` blocks that coloring reaches.
    Blocks,
    /// `malloc` blocks that are too small for coloring.
    SmallBlocks,
    /// Blocks requested with an alignment, which is a promise.
    AlignedBlocks,
    /// Variables of the program's file.
    Variables,
    /// Mappings.
    Mappings,
    /// Pieces of a mapping.
    Slots,
    /// Parts of one object, such as the rows of a matrix.
    Parts,
}

impl Class {
    /// Whole objects conflict with objects of any name; parts conflict with parts of the same object.
    pub fn of_many(self) -> bool {
        !matches!(self, Class::Slots | Class::Parts)
    }
}

/// Objects in each other's way, at one or more levels.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Kind of the objects.
    pub class: Class,
    /// Crowds, one an object name and level.
    pub crowds: Vec<Crowd>,
    /// Loads and stores of them that lie at the same offset of their pages.
    pub aliased: Vec<Alias>,
    /// Extents of those objects that can be colored: first address, and the address behind the last.
    pub aliased_extents: Vec<(u64, u64)>,
    /// The program colors them itself when the environment requests it: it was built with `nearmiss-color.h`.
    pub reads_environment: bool,
}

impl Subject {
    /// Makes a subject of no objects yet. `reads_environment`: whether the program reads the environment.
    pub fn new(class: Class, reads_environment: bool) -> Self {
        Subject {
            class,
            crowds: Vec::new(),
            aliased: Vec::new(),
            aliased_extents: Vec::new(),
            reads_environment: reads_environment && matches!(class, Class::Mappings | Class::Slots),
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

    /// Whether objects with known ends get in each other's way, rather than pieces of larger ones.
    pub fn whole_objects(&self) -> bool {
        self.class.of_many() && !self.crowds.iter().any(is_of_pieces)
    }

    fn heaviest(&self) -> Option<&Crowd> {
        self.crowds.iter().max_by_key(|c| c.misses)
    }

    /// Returns the bytes of the pieces; the lines lie at the same offset of each.
    pub fn alignment_bytes(&self) -> u64 {
        self.heaviest().map_or(PAGE_BYTES, Crowd::alignment_bytes)
    }

    /// Bytes from piece to piece.
    pub fn spacing_bytes(&self) -> u64 {
        self.heaviest().map_or(PAGE_BYTES, |c| c.spacing_bytes)
    }

    /// Returns, for each name, the crowd of its heaviest level.
    pub fn by_name(&self) -> Vec<&Crowd> {
        let mut heaviest: BTreeMap<&str, &Crowd> = BTreeMap::new();
        for crowd in &self.crowds {
            let best = heaviest.entry(&crowd.name).or_insert(crowd);
            if crowd.misses > best.misses {
                *best = crowd;
            }
        }
        heaviest.into_values().collect()
    }

    /// Objects in each other's way, or pieces of them.
    pub fn count(&self) -> u64 {
        match self.whole_objects() {
            true => self.extents().len() as u64,
            false => self.by_name().iter().map(|crowd| crowd.pieces).sum(),
        }
    }

    /// Lines in use at a time.
    pub fn competing_lines(&self) -> u64 {
        let pressing = |crowd: &Crowd| crowd.lines_a_set.round() * crowd.sets.round();
        self.heaviest().map_or_else(|| self.count(), |crowd| pressing(crowd) as u64)
    }

    /// Returns the policy that colors the subject's objects; the recorded addresses where `colors` is 1 or less.
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
        self.count() * (colors.saturating_sub(1)) * line_bytes / 2
    }
}
