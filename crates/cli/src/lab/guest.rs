//! Cells here: in a guest where the case requires one, else on this machine.
//!
//! In the guest runs the same program on the same lab, of which the guest sees a copy that it may change; the cell's
//! artifacts are what comes back.

use nearmiss_lab::{Cell, CellSink, Ended, Ending, Error, Executor, Guest as GuestSpec, Local, Site};
use nearmiss_record::units::Bytes;
use nearmiss_tap::guest::{
    CommandStatus, ExitReason, Guest, GuestCommand, GuestConfig, GuestExit, GuestShape, KernelImage,
};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

/// The guest's output, for who looks for a reason.
const OUTPUT: &str = "output";
/// Time that a guest may take beside the cell's own limits, which hold for the command and for what prepares it.
const AROUND: Duration = Duration::from_secs(120);

/// Runs cells on this machine, and in its guests.
pub struct Here;

impl Executor for Here {
    fn has_guest(&self, wanted: &GuestSpec) -> Result<(), Error> {
        config(wanted, ["true"]).map(drop)
    }

    fn run(&mut self, site: &Site<'_>, cells: &[Cell], on_end: &mut CellSink<'_>) -> Result<(), Error> {
        cells.iter().try_for_each(|cell| match site.guest(*cell) {
            Some(wanted) => on_end(in_guest(site, *cell, &wanted)?),
            None => Local.run(site, &[*cell], on_end),
        })
    }
}

fn cannot(error: impl std::fmt::Display) -> Error {
    Error::CannotHere(error.to_string())
}

/// A guest of this kind. Errors: it cannot be had here.
fn config<A: Into<OsString>>(wanted: &GuestSpec, argv: impl IntoIterator<Item = A>) -> Result<GuestConfig, Error> {
    let mut config = GuestConfig::new(GuestCommand::inherit(argv).map_err(cannot)?).map_err(cannot)?;
    config.shape = GuestShape::flat(wanted.cpus.unwrap_or(1));
    if let Some(kernel) = &wanted.kernel {
        config.kernel = KernelImage::named(kernel).map_err(cannot)?;
    }
    let words = wanted.arguments.iter().map(|word| word.parse());
    config.kernel_arguments = words.collect::<Result<_, _>>().map_err(cannot)?;
    let memory = wanted.memory.as_deref().map(Bytes::parse).transpose().map_err(cannot)?;
    config.memory = memory.map(|bytes| vec![bytes.0]).unwrap_or_default();
    Ok(config)
}

fn in_guest(site: &Site<'_>, cell: Cell, wanted: &GuestSpec) -> Result<Ended, Error> {
    let begun = Instant::now();
    let name = site.name(cell);
    let room = site.temporary().join(format!("{name}.guest"));
    let written = room.join("written");
    fs::create_dir_all(&written).map_err(|e| cannot(format!("{}: {e}", written.display())))?;
    let exit = boot_and_run(site, &name, wanted, &room, &written)?;
    let artifacts = written.join(site.lab().strip_prefix("/").unwrap_or(site.lab())).join("cells").join(&name);
    let ended = match artifacts.is_dir() {
        true => site.receive(cell, &artifacts, begun.elapsed())?,
        false => {
            let (how, why) = failure(&exit, &room.join(OUTPUT));
            site.lost(cell, how, why, begun.elapsed())?
        }
    };
    fs::remove_dir_all(&room).map_err(|e| cannot(format!("{}: {e}", room.display())))?;
    Ok(ended)
}

fn boot_and_run(
    site: &Site<'_>,
    name: &str,
    wanted: &GuestSpec,
    room: &Path,
    written: &Path,
) -> Result<GuestExit, Error> {
    let words = [site.nearmiss().as_os_str(), "lab".as_ref(), "cells".as_ref(), site.lab().as_os_str()];
    let words = words.into_iter().chain(["--inside".as_ref(), name.as_ref()]);
    let mut config = config(wanted, words)?;
    let streams = File::create(room.join(OUTPUT)).and_then(|file| Ok([file.try_clone()?, file])).map_err(cannot)?;
    let [output, errors] = streams;
    let nothing = File::open("/dev/null").map_err(cannot)?;
    config.command.streams = [Some(nothing.into()), Some(output.into()), Some(errors.into())];
    config.command.directory = site.start().to_owned();
    config.keep = Some(written.to_owned());
    config.timeout = Some(site.limit() * 3 + AROUND);
    let guest = Guest::launch(config).map_err(cannot)?;
    if guest.boot().is_some() {
        guest.go().map_err(cannot)?;
    }
    Ok(guest.wait())
}

/// Returns why nothing came back.
fn failure(exit: &GuestExit, output: &Path) -> (Ending, String) {
    let (how, why) = match (&exit.reason, exit.status) {
        (ExitReason::TimedOut, _) => (Ending::TimedOut, "the guest did not end in time".to_owned()),
        (ExitReason::Ended, Some(CommandStatus::Exited(code))) => {
            (Ending::Failed, format!("status {code} in the guest"))
        }
        (ExitReason::Ended, Some(CommandStatus::Signaled(number))) => {
            (Ending::Failed, format!("signal {number} in the guest"))
        }
        (reason, _) => (Ending::Failed, format!("the guest ended: {reason:?}")),
    };
    let output = fs::read(output).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    let further = last.into_iter().chain(exit.notes.iter().cloned());
    (how, [why].into_iter().chain(further).collect::<Vec<_>>().join("; "))
}
