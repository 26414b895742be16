//! Boots a guest up to where it can be saved, and saves it.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::super::channel::{Channel, Frame};
use super::super::hardware::Hardware;
use super::super::machine::{Purpose, Running};
use super::qmp::Monitor;
use super::{Common, LONGEST_BOOT, last_words};

/// A guest that has been saved; its memory is in the machine's files.
pub(super) struct Made {
    pub(super) state: Vec<u8>,
    pub(super) boot: Duration,
}

pub(super) fn boot_and_save(hardware: &Hardware<'_>, common: &Common<'_>) -> Result<Made, String> {
    let started = Instant::now();
    let image = common.kernel.bootable();
    let kernel: OwnedFd = File::open(&image).map_err(|error| format!("{}: {error}", image.display()))?.into();
    let mut running =
        hardware.start(Purpose::Save, &kernel, common.initramfs, None).map_err(|error| error.to_string())?;
    let saved = await_boot(&mut running, common.interrupted).and_then(|()| {
        let boot = started.elapsed();
        save(&mut running).map(|state| Made { state, boot })
    });
    let Running { guardian, reports, .. } = running;
    // No process may hold its memory when it is read.
    drop(guardian);
    saved.map_err(|why| last_words(reports, why))
}

/// Waits for the agent's word.
fn await_boot(running: &mut Running, interrupted: &AtomicBool) -> Result<(), String> {
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let control = &running.ports[0];
    let deadline = Instant::now() + LONGEST_BOOT;
    // Output of the guest's kernel must not fill the socket.
    let console = running.console.try_clone().map_err(|error| error.to_string())?;
    thread::spawn(move || std::io::copy(&mut { console }, &mut std::io::sink()));
    while poll(&mut [PollFd::new(control, PollFlags::IN)], Some(&LOOK)) != Ok(1) {
        if interrupted.load(Ordering::Acquire) {
            return Err("interrupted".into());
        }
        if Instant::now() > deadline {
            return Err(format!("the guest was not booted after {} s", LONGEST_BOOT.as_secs()));
        }
    }
    let control = control.try_clone().map_err(|error| error.to_string())?;
    match Channel::new(control).next() {
        Ok(Some(Frame::Text(text))) if text == "booted" => Ok(()),
        Ok(Some(Frame::Text(text))) => Err(text),
        Ok(_) => Err("the guest ended while it booted".into()),
        Err(broken) => Err(broken.to_string()),
    }
}

fn save(running: &mut Running) -> Result<Vec<u8>, String> {
    let monitor = running.monitor.take().ok_or("QEMU has no monitor")?;
    let mut monitor = Monitor::new(monitor)?;
    monitor.leave_memory_out()?;
    let (mut reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
    monitor.give("state", writer.as_fd())?;
    drop(writer);
    let state = thread::spawn(move || {
        let mut state = Vec::new();
        reader.read_to_end(&mut state).map(|_| state)
    });
    monitor.command("migrate", json!({ "uri": "fd:state" }))?;
    monitor.await_migration()?;
    // QEMU closes the pipe with the state's end.
    match state.join() {
        Ok(Ok(state)) if !state.is_empty() => Ok(state),
        _ => Err("QEMU sent no state".into()),
    }
}
