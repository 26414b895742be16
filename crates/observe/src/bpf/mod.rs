//! Kernel instruments: lock waits, polls, block I/O and the scheduler, by BPF programs that live exactly as long as
//! the observer does. Their links are file descriptors: the kernel detaches and frees them when the observer ends,
//! however it ends.

mod block;
mod calls;
mod futex;
mod layout;
mod load;
mod locks;
mod polls;
mod session;
mod tasks;

pub use load::{CallTracing, Wants};
pub use session::{BpfSession, Figures, Who};

/// Why the kernel instruments cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// Built without clang.
    #[error("this nearmiss was built without its BPF programs: install clang and libbpf-dev, and build it again")]
    NotBuilt,
    /// No type information of the running kernel.
    #[error(
        "the kernel has no type information (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF, as every Debian kernel since 11 has"
    )]
    NoBtf,
    /// Not allowed.
    #[error(
        "not allowed to load BPF programs: run as root, or with CAP_BPF and CAP_PERFMON (`sudo setcap cap_bpf,cap_perfmon+ep $(command -v nearmiss)`)"
    )]
    NotAllowed,
    /// The kernel refused a program or a map.
    #[error("{what}: {why}")]
    Refused {
        /// Which.
        what: String,
        /// What the kernel said.
        why: String,
    },
}

/// Whether BPF programs can be loaded here.
pub fn usable() -> Result<(), BpfError> {
    BpfSession::start(Wants { io: true, ..Wants::default() }, &Who::Tasks(Vec::new())).map(drop)
}

/// The poll call a log entry stands for.
pub(crate) fn poll_call(kind: u32) -> &'static str {
    layout::POLL_CALLS.get(kind as usize).copied().unwrap_or("?")
}
