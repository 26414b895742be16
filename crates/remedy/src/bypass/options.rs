use super::copies::{Options, Site};
use super::files;
use crate::size::parse_size;

/// `nearmiss apply bypass`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Let copies of the named call sites go past the CPU's caches; without a site nothing changes
    #[arg(long)]
    pub copies: bool,
    /// A call site: the calling function, or the address of the call in its file, as diagnose prints them; @CALLER
    /// names who calls that function in turn (may be repeated)
    #[arg(long = "site", value_name = "FUNC|MODULE+0xOFF[@CALLER]", requires = "copies")]
    pub sites: Vec<Site>,
    /// Let the copies of all sites go past the caches, those inside the C library too, by glibc's own threshold
    /// (glibc.cpu.x86_non_temporal_threshold; counts nothing)
    #[arg(long, requires = "copies", conflicts_with = "sites")]
    pub every_copy: bool,
    /// Leave copies of fewer bytes as they are (k, M suffixes)
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = parse_size)]
    pub min: u64,
    /// Let the regular files that the command reads and writes leave nothing in the page cache
    #[arg(long, conflicts_with = "copies")]
    pub files: bool,
    /// Only files whose names fit: *, ?, [ab]; ** also fits /; a pattern without / is about the last part of a name
    #[arg(long, value_name = "GLOB", requires = "files")]
    pub only: Option<String>,
}

impl From<Args> for Options {
    fn from(args: Args) -> Self {
        Options { sites: args.sites, least_bytes: args.min }
    }
}

impl From<Args> for files::Options {
    fn from(args: Args) -> Self {
        files::Options { only: args.only, ..files::Options::default() }
    }
}
