//! Starts the file server and QEMU under the guardian, with whom they die.

use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::error::{GuestError, Tried};
use super::memory_file;

static GUARDIAN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest-guard"));

/// A program for the guardian to start, and the descriptors that it keeps.
pub(super) struct Program {
    pub(super) path: String,
    pub(super) arguments: Vec<String>,
    pub(super) descriptors: Vec<RawFd>,
}

/// The guardian process. Dropping it ends everything below it.
pub(super) struct Guardian {
    lifeline: Option<PipeWriter>,
    child: Child,
}

/// Output of the guardian and its programs.
pub(super) struct Reports {
    /// Lines of the guardian: how a program ended, or why it did not start.
    pub(super) events: PipeReader,
    /// Output of the programs.
    pub(super) log: PipeReader,
}

impl Guardian {
    /// `server`: the file server, where there is one.
    pub(super) fn start(server: Option<&Program>, qemu: &Program) -> Result<(Self, Reports), GuestError> {
        let image = memory_file::holding("nearmiss-guard", GUARDIAN)?;
        let (lifeline_reader, lifeline) = std::io::pipe().tried("pipe")?;
        let (events, events_writer) = std::io::pipe().tried("pipe")?;
        let (log, log_writer) = std::io::pipe().tried("pipe")?;
        let mut command = Command::new(memory_file::inherited_path(&image));
        command.arg0("nearmiss-guard");
        command.arg(lifeline_reader.as_raw_fd().to_string());
        command.arg(events_writer.as_raw_fd().to_string());
        let mut inherited = vec![lifeline_reader.as_raw_fd(), events_writer.as_raw_fd()];
        for (number, program) in [server, Some(qemu)].into_iter().enumerate() {
            if number > 0 {
                command.arg("--");
            }
            let descriptors = program.map_or(&[][..], |program| &program.descriptors);
            let list: Vec<String> = descriptors.iter().map(ToString::to_string).collect();
            command.arg(list.join(",")).arg("--");
            if let Some(program) = program {
                command.arg(&program.path).args(&program.arguments);
            }
            inherited.extend(descriptors);
        }
        // The user's environment is meant for the command, not for these.
        command.env_clear();
        command.stdin(Stdio::null());
        command.stdout(log_writer.try_clone().tried("pipe")?);
        command.stderr(log_writer);
        // SAFETY: between fork and exec only fcntl is called, on descriptors that live until the
        // child has been spawned; nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                for &number in &inherited {
                    let descriptor = BorrowedFd::borrow_raw(number);
                    rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
                }
                Ok(())
            });
        }
        let child = command.spawn().tried("starting the guest's guardian")?;
        Ok((Self { lifeline: Some(lifeline), child }, Reports { events, log }))
    }

    /// Requests QEMU to end by itself, so that the plugin can finish.
    pub(super) fn request_end(&mut self) {
        if let Some(lifeline) = &mut self.lifeline {
            // A guardian that is gone has ended QEMU already.
            let _ = lifeline.write_all(b"T");
        }
    }

    /// Ends everything at once.
    pub(super) fn kill(&mut self) {
        self.lifeline = None;
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.kill();
        // It has been ordered to end; an error would mean that it was waited for already.
        let _ = self.child.wait();
    }
}

/// A connected pair of sockets, of which the second listens as vhost-user servers expect: the
/// connection waits in its queue. The name is one that the kernel makes up, in no directory, and that
/// vanishes with the socket.
pub(super) fn connected_to_listener() -> Result<(OwnedFd, OwnedFd), GuestError> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with};
    let make = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).tried("socket");
    let listener = make()?;
    bind(&listener, &rustix::net::SocketAddrUnix::new_unnamed()).tried("bind")?;
    listen(&listener, 1).tried("listen")?;
    let address = getsockname(&listener).tried("getsockname")?;
    let client = make()?;
    connect(&client, &address).tried("connect")?;
    Ok((client, listener))
}
