//! The tools: one file each.

mod diagnose;
mod doctor;
mod gate;
mod rehearse;
mod report;
mod runs;
mod verify;

use super::tool::Tool;

/// All tools, in the order in which they are used.
pub const TOOLS: &[Tool] = &[diagnose::TOOL, report::TOOL, rehearse::TOOL, verify::TOOL, gate::TOOL, doctor::TOOL];
