//! The tap's guest: a throw-away machine under QEMU's TCG that runs one command of the host.
//!
//! [`Guest::launch`] boots Debian's cloud kernel with an agent of our own as init, the host's root read-only under an
//! overlay, and everything about the command as it is outside. The guest's memory is shared ([`Guest::memory`]), so
//! that a consumer can read it. The agent waits before it starts the command: [`Guest::boot`] gathers its reports until
//! then, [`Guest::go`] lets it start, and [`Guest::wait`] returns the command's status.
//!
//! Nothing has a name that could be left behind: memory, archives and sockets are inherited as
//! descriptors, and QEMU and the file server live in a PID namespace under a guardian that dies with
//! this process.

mod archive;
mod arguments;
mod channel;
mod command;
mod command_status;
mod config;
mod error;
mod exit;
mod file_server;
mod guardian;
mod hardware;
mod host_memory;
mod initramfs;
mod input;
mod keep;
mod kernel;
mod kernel_argument;
mod kernel_description;
mod launch;
mod machine;
mod memory_file;
mod messages;
mod protocol;
mod qemu;
mod relay;
mod saved;
pub(crate) mod sealed;
mod signals;
mod spool;
mod supervision;
mod supervisor;
mod time_limit;
mod waits;
mod warm;

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use command::GuestCommand;
pub use command_status::CommandStatus;
pub use config::{GuestConfig, GuestShape, InstructionClock, PluginConfig, WarmUp};
pub use error::GuestError;
pub use exit::{ExitReason, GuestExit};
pub use keep::CodeNames;
pub use kernel::KernelImage;
pub use kernel_argument::KernelArgument;
pub use kernel_description::KernelDescription;
pub use messages::{GuestEvent, PerfRing, WarmEnd, WarmFiles};
pub use qemu::QemuBinary;
pub use signals::{CaughtSignals, ForwardSignals};
pub use warm::Warmth;

use error::Tried;
use supervision::Supervision;

/// A memory file with this content, and the path by which this process opens the file while the descriptor is held.
pub(crate) fn memory_path(name: &str, content: &[u8]) -> Result<(std::os::fd::OwnedFd, String), GuestError> {
    let file = memory_file::holding(name, content)?;
    let path = memory_file::inherited_path(&file);
    Ok((file, path))
}

/// The TCG plugin that was built with this library.
#[cfg(has_tap_plugin)]
pub static TAP_PLUGIN: Option<&[u8]> = Some(include_bytes!(concat!(env!("OUT_DIR"), "/tap-plugin.so")));
/// The TCG plugin that was built with this library.
#[cfg(not(has_tap_plugin))]
pub static TAP_PLUGIN: Option<&[u8]> = None;

/// The library that reports heap objects to the tap, as a file's content; preloaded into the command.
pub static HEAP_SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/heapshim.so"));

/// The cache of saved guests, beside that of kernels.
pub fn saved_guests() -> std::path::PathBuf {
    KernelImage::cache().with_file_name("guests")
}

/// Returns the memory by node that [`Guest::launch`] makes of `requested` bytes by node (empty: half of what is available,
/// split evenly).
pub fn plan_memory(requested: &[u64], nodes: u32) -> Result<Vec<u64>, GuestError> {
    config::memory_by_node(requested, nodes, config::available_memory())
}

/// The memory of one node of the guest.
#[derive(Debug)]
pub struct NodeMemory {
    bytes: u64,
    file: std::os::fd::OwnedFd,
}

impl NodeMemory {
    /// Returns the node's size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the shared file that holds the memory.
    pub fn file(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.file)
    }
}

/// The agent's reports before it was ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootFacts {
    /// The kernel's own description; `None` where a guest that is there could not send it.
    pub kernel: Option<KernelDescription>,
    /// The perf rings, a CPU each.
    pub perf_rings: Vec<PerfRing>,
    /// How long the guest took to become quiet after its boot, in ms.
    pub quiet_ms: u64,
    /// Whether the guest became quiet; if not, its own work is in what is recorded.
    pub settled: bool,
}

/// How a guest came to wait for its command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestStart {
    /// Time of the boot that was saved, *measured*, if the guest was restored; `None`: it was booted.
    pub restored: Option<Duration>,
    /// A note for the user, one sentence.
    pub note: Option<String>,
}

/// A running guest, which a drop ends.
pub struct Guest {
    start: GuestStart,
    memory: Vec<NodeMemory>,
    events: Receiver<GuestEvent>,
    control: Mutex<UnixStream>,
    supervision: Arc<Supervision>,
    supervisor: Option<JoinHandle<GuestExit>>,
}

impl Guest {
    /// Boots a guest. It does not start the command before [`Guest::go`].
    pub fn launch(config: GuestConfig) -> Result<Self, GuestError> {
        launch::launch(config)
    }

    /// Returns whether it was booted or restored.
    pub fn start(&self) -> &GuestStart {
        &self.start
    }

    /// The guest's memory by node. Node 0 begins at guest-physical 0; what does not fit below the
    /// PCI hole (all memory below 2.75 GiB in total, else 2 GiB) continues at 4 GiB; the other nodes
    /// follow where the one before ends.
    pub fn memory(&self) -> &[NodeMemory] {
        &self.memory
    }

    /// The next event; `None` when there will be none (the guest has ended) or none came in time.
    pub fn next_event(&self, within: Option<Duration>) -> Option<GuestEvent> {
        match within {
            Some(time) => self.events.recv_timeout(time).ok(),
            None => self.events.recv().ok(),
        }
    }

    /// Waits until the agent is ready to start the command; `None` when the guest ended instead ([`Guest::wait`]
    /// returns why).
    pub fn boot(&self) -> Option<BootFacts> {
        let mut facts = BootFacts::default();
        loop {
            match self.events.recv().ok()? {
                GuestEvent::Kernel(kernel_description) => facts.kernel = Some(kernel_description),
                GuestEvent::Perf(ring) => facts.perf_rings.push(ring),
                GuestEvent::Quiet { ms, settled } => (facts.quiet_ms, facts.settled) = (ms, settled),
                GuestEvent::Ready => return Some(facts),
                _ => {}
            }
        }
    }

    /// Lets the agent start the command.
    pub fn go(&self) -> Result<(), GuestError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.order(&format!("go {} {}", now.as_secs(), now.subsec_nanos()))
    }

    /// Sends a signal to the command's process group.
    pub fn signal(&self, number: i32) -> Result<(), GuestError> {
        self.order(&format!("signal {number}"))
    }

    /// Changes the size of the command's terminal.
    pub fn resize(&self, rows: u16, columns: u16) -> Result<(), GuestError> {
        self.order(&format!("window {rows} {columns} 0 0"))
    }

    /// Ends the guest at once.
    pub fn kill(&self) {
        self.supervision.end(ExitReason::Killed);
    }

    /// A handle for other threads, which can signal, resize and kill.
    pub fn remote(&self) -> Result<GuestRemote, GuestError> {
        let control = self.control.lock().ok().and_then(|control| control.try_clone().ok());
        let control = control.ok_or_else(|| GuestError::Config("no descriptor left for the guest".into()))?;
        Ok(GuestRemote { control: Mutex::new(control), supervision: Arc::clone(&self.supervision) })
    }

    /// Returns whether the guest is gone, so that nothing more will come from it.
    pub fn has_ended(&self) -> bool {
        self.supervisor.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the guest's end.
    pub fn wait(mut self) -> GuestExit {
        let exit = self.supervisor.take().and_then(|thread| thread.join().ok());
        exit.unwrap_or_else(|| GuestExit::of(ExitReason::Failed("the guest's supervisor failed".into())))
    }

    fn order(&self, order: &str) -> Result<(), GuestError> {
        send(&self.control, order)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(thread) = self.supervisor.take() {
            self.kill();
            // It ends as soon as the guest is gone; how it ended no longer matters.
            let _ = thread.join();
        }
    }
}

/// Acts on a guest from another thread.
pub struct GuestRemote {
    control: Mutex<UnixStream>,
    supervision: Arc<Supervision>,
}

impl GuestRemote {
    /// Sends a signal to the command's process group.
    pub fn signal(&self, number: i32) -> Result<(), GuestError> {
        send(&self.control, &format!("signal {number}"))
    }

    /// Changes the size of the command's terminal.
    pub fn resize(&self, rows: u16, columns: u16) -> Result<(), GuestError> {
        send(&self.control, &format!("window {rows} {columns} 0 0"))
    }

    /// Ends the guest at once.
    pub fn kill(&self) {
        self.supervision.end(ExitReason::Killed);
    }

    /// Returns whether the command has been started.
    pub fn has_begun(&self) -> bool {
        self.supervision.has_begun()
    }
}

fn send(control: &Mutex<UnixStream>, order: &str) -> Result<(), GuestError> {
    let mut control = control.lock().map_err(|_| GuestError::Config("the guest's supervisor failed".into()))?;
    messages::send_order(&mut *control, order).tried("talking to the guest's agent")
}
