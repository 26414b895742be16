//! Kernel instruments: lock waits, polls, block I/O and the scheduler, by BPF programs that live exactly as long as
//! the observer does. Their links are file descriptors: the kernel detaches and frees them when the observer ends,
//! however it ends.

mod block;
mod calls;
mod flows;
mod futex;
mod layout;
mod load;
mod locks;
mod memory;
mod pace;
mod places;
mod poll_rows;
mod polls;
mod runtime;
mod session;
mod sets;
mod tasks;
mod window;

use crate::rights::Rights;
use std::io;

pub use load::{CallTracing, Wants};
pub(crate) use session::EventLog;
pub use session::{BpfSession, Figures, Who};

/// Why the kernel instruments cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// Built without clang.
    #[error("this nearmiss was built without its BPF programs")]
    NotBuilt,
    /// No type information of the running kernel.
    #[error("no type information of the kernel: no /sys/kernel/btf/vmlinux")]
    NoBtf,
    /// Not allowed.
    #[error("{}", .0.missing())]
    NotAllowed(Rights),
    /// The kernel refused a program or a map.
    #[error("{what}: {why}")]
    Refused {
        /// The refused program or map.
        what: String,
        /// Error of the kernel.
        why: String,
    },
}

impl BpfError {
    /// Returns the command that gets past it; empty when there is none.
    pub fn to_enable(&self) -> &'static str {
        match self {
            BpfError::NotBuilt => "apt-get install clang libbpf-dev, and build nearmiss again",
            BpfError::NoBtf => {
                "boot a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's have it); in a container, let /sys be seen"
            }
            BpfError::NotAllowed(rights) => rights.to_enable(),
            BpfError::Refused { .. } => "",
        }
    }
}

/// Puts an error of loading or reading into words; the cases a user can do something about by name.
fn refused(what: &str, error: &(dyn std::error::Error + 'static)) -> BpfError {
    let mut why = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>()
            && matches!(io.raw_os_error(), Some(libc::EPERM | libc::EACCES))
            && Rights::now() != Rights::Full
        {
            return BpfError::NotAllowed(Rights::now());
        }
        why = format!("{why}: {inner}");
        cause = inner.source();
    }
    let first = why.lines().next().unwrap_or_default();
    BpfError::Refused { what: what.to_owned(), why: first.chars().take(300).collect() }
}

/// Whether BPF programs can be loaded here.
pub fn usable() -> Result<(), BpfError> {
    BpfSession::start(Wants { io: true, ..Wants::default() }, &Who::Tasks(Vec::new())).map(drop)
}

pub(crate) use layout::{LockEvent, PollEvent};
pub(crate) use locks::{kind as lock_kind, merged as merged_locks};

/// The poll call a log entry stands for.
pub(crate) fn poll_call(kind: u32) -> &'static str {
    layout::POLL_CALLS.get(kind as usize).copied().unwrap_or("?")
}
