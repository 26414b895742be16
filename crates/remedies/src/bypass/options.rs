use super::copies::{Options, Site};
use super::files;
use crate::size::parse_size;

/// `nearmiss apply bypass`'s arguments, shared with the other verbs that take the remedy.
///
/// An option of one of the two parts conflicts with the other: clap requires nothing that conflicts with a given option.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Let copies of the named call sites go past the CPU's caches; without a site nothing changes
    #[arg(long)]
    pub copies: bool,
    /// A call site: the calling function, or the address of the call in its file, as diagnose prints them; @CALLER
    /// names who calls that function in turn (may be repeated)
    #[arg(long = "site", value_name = "FUNC|MODULE+0xOFF[@CALLER]", requires = "copies", conflicts_with = "files")]
    pub sites: Vec<Site>,
    /// Let the copies of all sites go past the caches from --min on, those inside the C library too, by glibc's own
    /// threshold (glibc.cpu.x86_non_temporal_threshold; counts nothing)
    #[arg(long, requires = "copies", conflicts_with_all = ["sites", "files"])]
    pub every_copy: bool,
    /// Leave copies of fewer bytes as they are (k, M suffixes) [default: 4k, with --every-copy 1M]
    #[arg(long, value_name = "SIZE", requires = "copies", conflicts_with = "files", value_parser = parse_size)]
    pub min: Option<u64>,
    /// Let the regular files that the command reads and writes leave nothing in the page cache
    #[arg(long, conflicts_with = "copies")]
    pub files: bool,
    /// Only files with names that fit: *, ?, [ab]; ** also fits /; a pattern without / is about the last part of a name
    #[arg(long, value_name = "GLOB", requires = "files", conflicts_with = "copies")]
    pub only: Option<String>,
}

/// Least size where nobody chose a site: copies that the caches would hold are not to pay. It is as large as a core's
/// second level.
const LEAST_OF_EVERY: u64 = 1 << 20;

impl Args {
    /// Least size in bytes of a copy that goes past the caches.
    pub(super) fn least_bytes(&self) -> u64 {
        let default = if self.every_copy { LEAST_OF_EVERY } else { Options::default().least_bytes };
        self.min.unwrap_or(default)
    }
}

impl From<Args> for Options {
    fn from(args: Args) -> Self {
        Options { least_bytes: args.least_bytes(), sites: args.sites }
    }
}

impl From<Args> for files::Options {
    fn from(args: Args) -> Self {
        files::Options { only: args.only, ..files::Options::default() }
    }
}
