//! A server that is traced while a load runs, and processes that run on from a snapshot.

use super::Subject;
use crate::conductor::{conducted, restored};
use nearmiss_record::machine::Machine;
use nearmiss_tap::guest::KernelImage;
use nearmiss_tap::window::Window;
use std::ffi::OsString;

/// Returns the command in the guest, and its recorded window. Errors: a window beside that of the load, or no such
/// load.
pub(super) fn recorded(
    subject: &Subject<'_>,
    machine: &Machine,
    kernel: &KernelImage,
) -> anyhow::Result<(Vec<OsString>, Window)> {
    let args = subject.args;
    if let Some(snapshot) = subject.snapshot {
        // The load's program is looked for here, ahead of the boot.
        args.record.load.load()?;
        if args.record.window.is_given() {
            anyhow::bail!("-p records from the snapshot on; leave out --from, --for and --until");
        }
        return restored(&args.record.load, args.record.nodes.apart(machine), snapshot, kernel);
    }
    if args.record.load.load()?.is_none() {
        return Ok((args.command.clone(), args.record.window.window()));
    }
    if args.record.window.is_given() {
        anyhow::bail!("--load records while the load runs; leave out --from, --for and --until");
    }
    conducted(&args.record.load, args.record.nodes.apart(machine), &args.command)
}

/// Returns the notes for the head.
pub(super) fn notes(subject: &Subject<'_>) -> impl Iterator<Item = String> {
    let load = subject.args.record.load.command().map(|load| {
        format!("The window is that of the load `{load}`, which ran in the guest beside the server: the figures are of both.")
    });
    subject.snapshot.map(|snapshot| crate::snapshot::note(snapshot)).into_iter().chain(load)
}
