use crate::host_line::host_line_bytes;
use crate::size::parse_size;
use nearmiss_analysis::CannotEngage;

/// Objects to color, and the number of colors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of colors: a block or stack is shifted by 0 to `colors - 1` lines.
    pub colors: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Whether the stacks of new threads are colored.
    pub stacks: bool,
    /// Least size in bytes from which blocks of `malloc`, `calloc` and `realloc` are colored; `None` colors none.
    pub block_bytes: Option<u64>,
}

/// glibc maps blocks from this size on, so that all begin at the same page offset.
const MAPPED_BLOCK_BYTES: u64 = 128 * 1024;

/// Most colors the libraries take.
pub const MOST_COLORS: u32 = 1024;

/// Smallest block that can be colored. Blocks of nearly a page lie a page apart, and a third more memory lets them lie a
/// page and a line apart; smaller ones would cost more.
pub const LEAST_BLOCK_BYTES: u64 = 3072;

impl Default for Options {
    /// Stacks and blocks in the paper's 32 colors, on this machine's lines.
    fn default() -> Self {
        Options { colors: 32, line_bytes: host_line_bytes(), stacks: true, block_bytes: Some(MAPPED_BLOCK_BYTES) }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), CannotEngage> {
        let wrong = |what: String| Err(CannotEngage::Parameters(what));
        if !(1..=MOST_COLORS).contains(&self.colors) {
            return wrong(format!("--colors {}: must be 1 to {MOST_COLORS}", self.colors));
        }
        if !self.line_bytes.is_power_of_two() || !(16..=1024).contains(&self.line_bytes) {
            return wrong(format!("a line of {} bytes: must be a power of two from 16 to 1024", self.line_bytes));
        }
        match self.block_bytes {
            Some(bytes) if bytes < LEAST_BLOCK_BYTES => {
                wrong(format!("--blocks {bytes}: blocks under {LEAST_BLOCK_BYTES} bytes are not colored"))
            }
            None if !self.stacks => wrong("nothing to color: choose stacks, blocks or both".to_owned()),
            _ => Ok(()),
        }
    }
}

/// `nearmiss apply color`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many colors; each is one cache line further
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub colors: u32,
    /// Color thread stacks (without --stacks and --blocks: both)
    #[arg(long)]
    pub stacks: bool,
    /// Color malloc blocks of at least SIZE bytes (k, M suffixes)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub blocks: Option<u64>,
}

impl From<&Args> for Options {
    fn from(args: &Args) -> Self {
        let both = !args.stacks && args.blocks.is_none();
        let default = Options::default();
        Options {
            colors: args.colors,
            stacks: args.stacks || both,
            block_bytes: if both { default.block_bytes } else { args.blocks },
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_choice_both_are_colored() {
        let args = |stacks, blocks| Options::from(&Args { colors: 8, stacks, blocks });
        assert_eq!(args(false, None).block_bytes, Some(MAPPED_BLOCK_BYTES));
        assert!(args(false, None).stacks);
        assert_eq!(args(true, None).block_bytes, None);
        assert!(!args(false, Some(8192)).stacks);
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let good = Options::default();
        assert!(good.check().is_ok());
        assert!(Options { colors: 0, ..good.clone() }.check().is_err());
        assert!(Options { colors: 1025, ..good.clone() }.check().is_err());
        assert!(Options { block_bytes: Some(100), ..good.clone() }.check().is_err());
        assert!(Options { stacks: false, block_bytes: None, ..good }.check().is_err());
    }
}
