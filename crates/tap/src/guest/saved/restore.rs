//! Restores a saved guest for a run.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::json;

use super::super::arguments::{FILES_DEVICE, FILES_QUEUE, FILES_TAG, SLOT};
use super::super::channel::{Channel, Frame};
use super::super::config::PluginConfig;
use super::super::hardware::Hardware;
use super::super::machine::{Purpose, Running};
use super::super::messages::send_order;
use super::image::Image;
use super::qmp::Monitor;
use super::{AgentFile, Common, LONGEST_RESTORE, last_words};

/// As many as the agent reads (`native/agent/init/saved.c`).
const ENTROPY_BYTES: usize = 64;

/// A guest that has this run's files, random numbers and time of day. Errors: why there is no such guest. Nothing of it runs then, and the memory is to be emptied.
pub(in super::super) fn restore(
    image: &Image,
    hardware: &Hardware<'_>,
    common: &Common<'_>,
    plugin: Option<&PluginConfig>,
    files: &[AgentFile],
) -> Result<Running, String> {
    let kernel = common.kernel.image();
    let kernel: OwnedFd = File::open(&kernel).map_err(|error| format!("{}: {error}", kernel.display()))?.into();
    let (filled, running) = thread::scope(|scope| {
        let filling = scope.spawn(|| image.fill(hardware.memory));
        let running = hardware.start(Purpose::Restore, &kernel, common.initramfs, plugin);
        // The monitor's greeting takes as long as the memory.
        let running = running.map_err(|error| error.to_string()).and_then(|mut running| {
            let monitor = running.monitor.take().ok_or("QEMU has no monitor")?;
            Ok((Monitor::new(monitor), running))
        });
        (filling.join().unwrap_or_else(|_| Err("it cannot be read".into())), running)
    });
    let (monitor, running) = running?;
    let restored = filled
        .and(monitor)
        .and_then(|mut monitor| load(&mut monitor, &image.state))
        .and_then(|()| hand_over(&running.ports[0], files).map_err(|error| format!("talking to the agent: {error}")))
        .and_then(|()| await_word(&running.ports[0]));
    match restored {
        Ok(()) => Ok(running),
        Err(why) => {
            let Running { guardian, reports, .. } = running;
            drop(guardian);
            Err(last_words(reports, why))
        }
    }
}

/// Loads the state, plugs the file server in, and lets the guest run.
fn load(monitor: &mut Monitor, state: &[u8]) -> Result<(), String> {
    monitor.leave_memory_out()?;
    let (reader, mut writer) = std::io::pipe().map_err(|error| error.to_string())?;
    monitor.give("state", reader.as_fd())?;
    drop(reader);
    thread::scope(|scope| {
        // Should QEMU not read all of it, it prints why.
        scope.spawn(move || drop(writer.write_all(state)));
        monitor.command("migrate-incoming", json!({ "uri": "fd:state" }))?;
        monitor.await_migration()
    })?;
    let files = json!({
        "driver": FILES_DEVICE, "bus": SLOT, "chardev": "files", "tag": FILES_TAG, "queue-size": FILES_QUEUE,
    });
    monitor.command("device_add", files)?;
    monitor.command("cont", json!({})).map(drop)
}

/// Sends the agent what this run differs by.
fn hand_over(control: &UnixStream, files: &[AgentFile]) -> std::io::Result<()> {
    let mut seed = [0; ENTROPY_BYTES];
    getrandom(&mut seed, GetRandomFlags::empty())?;
    let entropy = AgentFile { path: "/entropy", mode: 0o600, content: seed.to_vec() };
    let mut to = control;
    control.set_write_timeout(Some(LONGEST_RESTORE))?;
    for file in files.iter().chain([&entropy]) {
        send_order(&mut to, &format!("file {:o} {} {}", file.mode, file.content.len(), file.path))?;
        to.write_all(&file.content)?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    send_order(&mut to, &format!("restored {} {}", now.as_secs(), now.subsec_nanos()))
}

fn await_word(control: &UnixStream) -> Result<(), String> {
    let deadline = Instant::now() + LONGEST_RESTORE;
    let left = deadline.saturating_duration_since(Instant::now());
    let time = Timespec { tv_sec: left.as_secs() as _, tv_nsec: 0 };
    if poll(&mut [PollFd::new(control, PollFlags::IN)], Some(&time)) != Ok(1) {
        return Err("the restored guest does not answer".into());
    }
    let control = control.try_clone().map_err(|error| error.to_string())?;
    match Channel::new(control).next() {
        Ok(Some(Frame::Text(text))) if text == "restored" => Ok(()),
        Ok(Some(Frame::Text(text))) => Err(text),
        Ok(_) => Err("the restored guest ended".into()),
        Err(broken) => Err(broken.to_string()),
    }
}
