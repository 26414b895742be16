//! Common phrases in the reports of several preloaded libraries.

use std::fmt;

/// Continues a report with the programs that bring a `malloc` of their own, if there are any.
pub fn own_malloc(out: &mut fmt::Formatter<'_>, own: u64, programs: u64) -> fmt::Result {
    match own {
        0 => Ok(()),
        _ => write!(out, "; {own} of {programs} programs bring their own malloc, and its blocks are left as they are"),
    }
}
