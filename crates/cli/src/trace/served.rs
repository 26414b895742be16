//! A server that is traced while a load runs.

use super::Args;
use crate::conductor::conducted;
use nearmiss_record::machine::Machine;
use nearmiss_tap::window::Window;
use std::ffi::OsString;

/// What runs in the guest, and what is recorded of that. Errors: a window beside that of the load, or no such load.
pub(super) fn recorded(args: &Args, machine: &Machine) -> anyhow::Result<(Vec<OsString>, Window)> {
    if args.record.load.load()?.is_none() {
        return Ok((args.command.clone(), args.record.window.window()));
    }
    if args.record.window.is_given() {
        anyhow::bail!("--load records while the load runs; leave out --from, --for and --until");
    }
    conducted(&args.record.load, args.record.nodes.apart(machine), &args.command)
}

/// What the head says of it.
pub(super) fn note(args: &Args) -> Option<String> {
    let load = args.record.load.command()?;
    Some(format!(
        "The window is that of the load `{load}`, which ran in the guest beside the server: the figures are of both."
    ))
}
