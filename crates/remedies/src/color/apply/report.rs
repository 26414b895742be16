use super::Options;
use super::libraries as names;
use crate::preload::{LibraryCounts, own_malloc};
use nearmiss_analysis::AppliedRecord;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `nearmiss/color-applied/1`.
const SCHEMA: &str = "nearmiss/color-applied/1";

/// The format of the record.
pub(in crate::color) const RECORD: AppliedRecord = AppliedRecord::of::<Report>(SCHEMA);

/// Acts of coloring on a command: counted by the libraries inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// `nearmiss/color-applied/1`.
    pub schema: &'static str,
    /// Number of colors.
    pub colors: u32,
    /// Bytes a color.
    pub line_bytes: u32,
    /// Thread stacks, if they were to be colored.
    pub stacks: Option<Stacks>,
    /// Blocks, if they were to be colored.
    pub blocks: Option<Blocks>,
}

/// Counts of thread stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stacks {
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Threads started on a colored stack.
    pub colored: u64,
    /// Threads left as they were: their stack has no room for two colors.
    pub left: u64,
}

/// Counts of blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blocks {
    /// Least size in bytes from which any block is colored.
    pub least_bytes: u64,
    /// Programs in which the library was in place, the command's children included.
    pub programs: u64,
    /// Programs with another `malloc` than the C library's, so that nothing was colored.
    pub programs_with_own_malloc: u64,
    /// Blocks placed in turn on one color after the other.
    pub colored: u64,
    /// Blocks left as they were: memory lacked, or the C library mapped them.
    pub left: u64,
    /// Bytes that the blocks were made longer in all, freed blocks included.
    pub added_bytes: u64,
}

impl Report {
    pub(super) fn new(options: &Options, parts: &[LibraryCounts]) -> Self {
        let part = |library: &str| parts.iter().find(|part| part.library == library);
        Report {
            schema: SCHEMA,
            colors: options.colors,
            line_bytes: options.line_bytes,
            stacks: part(names::STACKS.name).map(|stacks| Stacks {
                programs: stacks.programs,
                colored: stacks.counter(names::COLORED),
                left: stacks.counter(names::LEFT),
            }),
            blocks: part(names::BLOCKS.name).zip(options.block_bytes).map(|(blocks, least_bytes)| Blocks {
                least_bytes,
                programs: blocks.programs,
                programs_with_own_malloc: blocks.counter(names::MALLOC_ELSEWHERE),
                colored: blocks.counter(names::COLORED),
                left: blocks.counter(names::LEFT),
                added_bytes: blocks.counter(names::ADDED_BYTES),
            }),
        }
    }

    /// Stacks and blocks colored.
    pub(super) fn colored(&self) -> u64 {
        self.stacks.as_ref().map_or(0, |stacks| stacks.colored)
            + self.blocks.as_ref().map_or(0, |blocks| blocks.colored)
    }

    /// Programs that were under coloring.
    pub(super) fn programs(&self) -> u64 {
        let of_stacks = self.stacks.as_ref().map_or(0, |stacks| stacks.programs);
        of_stacks.max(self.blocks.as_ref().map_or(0, |blocks| blocks.programs))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "color (measured): engaged, {} colors of {} bytes", self.colors, self.line_bytes)?;
        if let Some(stacks) = &self.stacks {
            write!(out, "; {} thread stacks colored", stacks.colored)?;
            if stacks.left > 0 {
                write!(out, ", {} left (too small)", stacks.left)?;
            }
        }
        if let Some(blocks) = &self.blocks {
            write!(out, "; {} blocks colored, {} bytes added", blocks.colored, blocks.added_bytes)?;
            if blocks.left > 0 {
                write!(out, ", {} left (no memory, or mapped)", blocks.left)?;
            }
            own_malloc(out, blocks.programs_with_own_malloc, blocks.programs)?;
        }
        Ok(())
    }
}
