//! How `doctor` looks at a machine; tests put another machine in its place.

use crate::Remedies;
use nearmiss_analysis::{Ability, Remedy};
use nearmiss_observe::watch::{Capability, capabilities};
use nearmiss_snapshot::{Criu, Fit};
use nearmiss_tap::guest::{KernelImage, QemuBinary, TAP_PLUGIN};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Queries on a machine.
pub trait Probe {
    /// Content of a file, trimmed.
    fn read(&self, path: &str) -> Option<String>;
    /// Whether a path exists.
    fn exists(&self, path: &str) -> bool;
    /// The emulator, or what is wrong and what to do.
    fn emulator(&self) -> Result<Emulator, String>;
    /// The guest's kernel: its release, or what is wrong and what to do.
    fn kernel(&self) -> Result<String, String>;
    /// The plugin was built into this binary.
    fn plugin(&self) -> bool;
    /// This host's caches in one line, or why they are unknown.
    fn caches(&self) -> Result<String, String>;
    /// Instruction set of this binary.
    fn isa(&self) -> &'static str;
    /// Runs as root.
    fn root(&self) -> bool;
    /// The kernel gives this process namespaces of its own, by trying.
    fn namespaces(&self) -> bool;
    /// A trace of `true`: what it took, or why there is none. `None` where it is not to be tried.
    fn trial(&self) -> Option<Result<String, String>>;
    /// Whether this process may freeze another one and read its memory.
    fn may_freeze(&self) -> bool;
    /// The tool that takes snapshots of running processes, and its limit if it has one; or what is wrong and what to
    /// do.
    fn snapshots(&self) -> Result<(String, Option<&'static str>), String>;
    /// Instruments for a live program, by trying.
    fn instruments(&self) -> Vec<Capability>;
    /// Requirements of the remedies, by the remedy's name, by trying.
    fn remedies(&self) -> Vec<(&'static str, Ability)>;
}

/// An emulator that traces.
#[derive(Clone)]
pub struct Emulator {
    /// Version and path.
    pub found: String,
    /// Caution for its user.
    pub caution: Option<String>,
}

/// This machine.
pub struct System {
    /// Remedies that are offered.
    pub remedies: Remedies,
    /// Nothing is tried that takes seconds.
    pub quick: bool,
}

impl Probe for System {
    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn emulator(&self) -> Result<Emulator, String> {
        let qemu = QemuBinary::installed().map_err(|e| e.to_string())?;
        let found = format!("QEMU {}.{}, {}", qemu.version.0, qemu.version.1, qemu.path.display());
        Ok(Emulator { found, caution: qemu.caution() })
    }

    fn kernel(&self) -> Result<String, String> {
        KernelImage::newest().map(|k| k.release()).map_err(|e| e.to_string())
    }

    fn plugin(&self) -> bool {
        TAP_PLUGIN.is_some()
    }

    fn caches(&self) -> Result<String, String> {
        let machine = nearmiss_host::host(nearmiss_host::Latencies::Assumed).map_err(|e| e.to_string())?;
        Ok(crate::machine::caches_in_one_line(&machine))
    }

    fn isa(&self) -> &'static str {
        std::env::consts::ARCH
    }

    fn may_freeze(&self) -> bool {
        nearmiss_snapshot::has_rights().is_ok()
    }

    fn root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    fn namespaces(&self) -> bool {
        let mut child = std::process::Command::new("true");
        // SAFETY: between fork and exec only system calls are made.
        unsafe { child.pre_exec(own_namespaces) }.status().is_ok()
    }

    fn trial(&self) -> Option<Result<String, String>> {
        (!self.quick).then(|| super::trial::trace_true().map_err(|error| crate::explain::in_words(&error)))
    }

    fn snapshots(&self) -> Result<(String, Option<&'static str>), String> {
        let (criu, fit) = Criu::fitting().map_err(|error| error.to_string())?;
        let limit = (fit == Fit::NoSockets).then_some("on this kernel not of processes with TCP sockets");
        Ok((format!("CRIU {}", criu.version_text), limit))
    }

    fn instruments(&self) -> Vec<Capability> {
        capabilities()
    }

    fn remedies(&self) -> Vec<(&'static str, Ability)> {
        let of = |remedy: &&'static Remedy| {
            let name = remedy.name;
            (remedy.abilities)().into_iter().map(move |ability| (name, ability))
        };
        self.remedies.iter().flat_map(of).collect()
    }
}

/// Makes namespaces as the guardian of a guest does (`native/agent/guard`).
fn own_namespaces() -> std::io::Result<()> {
    let wanted = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    // SAFETY: the calling process has one thread and shares no descriptors or memory with another.
    let separate = |flags| unsafe { unshare_unsafe(flags) };
    Ok(separate(wanted).or_else(|_| separate(wanted | UnshareFlags::NEWUSER))?)
}
