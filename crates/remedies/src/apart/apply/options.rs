use crate::host_line::host_line_bytes;
use nearmiss_analysis::CannotEngage;

/// Which blocks get lines of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Least and most bytes of a block.
    pub sizes: (u64, u64),
}

/// Largest block that the library moves.
pub const MOST_BLOCK_BYTES: u64 = 1 << 20;
const USUAL: (u64, u64) = (1, 128);

impl Default for Options {
    /// Blocks of up to two lines, on this machine's lines.
    fn default() -> Self {
        Options { line_bytes: host_line_bytes(), sizes: USUAL }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), CannotEngage> {
        let wrong = |what: String| Err(CannotEngage::Parameters(what));
        let (least, most) = self.sizes;
        if !self.line_bytes.is_power_of_two() || !(16..=4096).contains(&self.line_bytes) {
            return wrong(format!("a line of {} bytes: must be a power of two from 16 to 4096", self.line_bytes));
        }
        if least < 1 || least > most || most > MOST_BLOCK_BYTES {
            return wrong(format!(
                "--sizes {least}-{most}: must be within 1-{MOST_BLOCK_BYTES}, the smaller one first"
            ));
        }
        Ok(())
    }
}

/// `nearmiss apply apart`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Give malloc blocks of LEAST to MOST bytes lines of their own
    #[arg(long, value_name = "LEAST-MOST", default_value = "1-128", value_parser = parse_sizes)]
    pub sizes: (u64, u64),
}

impl From<&Args> for Options {
    fn from(args: &Args) -> Self {
        Options { sizes: args.sizes, ..Options::default() }
    }
}

fn parse_sizes(text: &str) -> Result<(u64, u64), String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    match (least.parse(), most.parse()) {
        (Ok(least), Ok(most)) => Ok((least, most)),
        _ => Err("write sizes in bytes as 24 or 16-64".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_one_or_from_one_to_another() {
        assert_eq!(parse_sizes("16-64"), Ok((16, 64)));
        assert_eq!(parse_sizes("24"), Ok((24, 24)));
        assert!(parse_sizes("").is_err() && parse_sizes("16-").is_err() && parse_sizes("a-b").is_err());
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let sizes = |least, most| Options { sizes: (least, most), line_bytes: 64 }.check();
        assert!(sizes(1, 128).is_ok() && sizes(1, MOST_BLOCK_BYTES).is_ok());
        assert!(sizes(0, 8).is_err() && sizes(9, 8).is_err() && sizes(1, MOST_BLOCK_BYTES + 1).is_err());
        assert!(Options { sizes: USUAL, line_bytes: 48 }.check().is_err());
    }
}
