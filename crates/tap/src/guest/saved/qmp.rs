//! QEMU's monitor, as far as saving and restoring a guest need it (docs/interop/qmp-spec in QEMU's sources).

use std::io::{BufRead, BufReader, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};

/// A command's answer takes a moment, on a busy host seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connected monitor.
pub(super) struct Monitor {
    lines: BufReader<UnixStream>,
}

impl Monitor {
    /// Waits for the greeting and leaves the mode in which nothing but capabilities is settled.
    pub(super) fn new(stream: UnixStream) -> Result<Self, String> {
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        let mut monitor = Self { lines: BufReader::new(stream) };
        monitor.line()?;
        monitor.command("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Runs a command. Returns QEMU's answer. Errors: QEMU's refusal.
    pub(super) fn command(&mut self, name: &str, arguments: Value) -> Result<Value, String> {
        let text = json!({ "execute": name, "arguments": arguments }).to_string();
        self.lines.get_mut().write_all(text.as_bytes()).map_err(|error| format!("{name}: {error}"))?;
        self.answer(name)
    }

    /// Hands a descriptor over, under a name.
    pub(super) fn give(&mut self, name: &str, file: BorrowedFd<'_>) -> Result<(), String> {
        let text = json!({ "execute": "getfd", "arguments": { "fdname": name } }).to_string();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file];
        control.push(SendAncillaryMessage::ScmRights(&files));
        let stream = self.lines.get_ref().as_fd();
        sendmsg(stream, &[IoSlice::new(text.as_bytes())], &mut control, SendFlags::NOSIGNAL)
            .map_err(|error| format!("getfd: {error}"))?;
        self.answer("getfd").map(drop)
    }

    /// The memory is a shared file that is kept or filled beside the state.
    pub(super) fn leave_memory_out(&mut self) -> Result<(), String> {
        let capability = json!([{ "capability": "x-ignore-shared", "state": true }]);
        self.command("migrate-set-capabilities", json!({ "capabilities": capability })).map(drop)
    }

    /// Waits until the state has gone out or come in.
    pub(super) fn await_migration(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let answer = self.command("query-migrate", json!({}))?;
            match answer["status"].as_str().unwrap_or_default() {
                "completed" => return Ok(()),
                "failed" | "cancelled" => return Err(format!("QEMU cannot carry its state: {}", answer["error-desc"])),
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
        Err("QEMU did not carry its state in time".into())
    }

    fn answer(&mut self, command: &str) -> Result<Value, String> {
        loop {
            let line: Value = self.line()?;
            if let Some(error) = line.get("error") {
                return Err(format!("{command}: {}", error["desc"].as_str().unwrap_or_default()));
            }
            if let Some(answer) = line.get("return") {
                return Ok(answer.clone());
            }
        }
    }

    fn line(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => Err("QEMU ended".into()),
            Ok(_) => serde_json::from_str(&line).map_err(|error| format!("QEMU's monitor: {error}")),
            Err(error) => Err(format!("QEMU's monitor: {error}")),
        }
    }
}
