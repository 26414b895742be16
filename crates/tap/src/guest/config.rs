//! Command to run, machine to run it on, and QEMU to run it under.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::command::GuestCommand;
use super::error::GuestError;
use super::kernel::KernelImage;
use super::kernel_argument::KernelArgument;
use super::qemu::QemuBinary;
use super::saved_guests;

/// The machine's shape: `packages * cores * threads` virtual CPUs, numbered threads first, then
/// cores, then packages, and split evenly over the memory nodes in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestShape {
    /// Processor packages (sockets).
    pub packages: u32,
    /// Cores a package.
    pub cores: u32,
    /// Hardware threads a core.
    pub threads: u32,
    /// Memory nodes.
    pub nodes: u32,
}

impl GuestShape {
    /// One package of `cpus` cores without hardware threads, one memory node.
    pub fn flat(cpus: u32) -> Self {
        Self { packages: 1, cores: cpus.max(1), threads: 1, nodes: 1 }
    }

    /// Virtual CPUs in all.
    pub fn cpus(&self) -> u32 {
        self.packages * self.cores * self.threads
    }

    /// Returns the same kind of machine with at most `cpus` CPUs: siblings stay, then packages, and cores go first. The
    /// result may have fewer CPUs than `cpus`, where they do not divide evenly.
    #[must_use]
    pub fn cut_to(&self, cpus: u32) -> Self {
        let cpus = cpus.max(1);
        let threads = self.threads.min(cpus);
        let packages = self.packages.min(cpus / threads).max(1);
        let cores = self.cores.min(cpus / threads / packages).max(1);
        let nodes = match self.nodes {
            0 | 1 => 1,
            nodes => nodes.min(packages * (nodes / self.packages.max(1)).max(1)),
        };
        Self { packages, cores, threads, nodes }
    }

    /// The CPUs of a memory node.
    pub fn cpus_of_node(&self, node: u32) -> std::ops::Range<u32> {
        let at = |node: u32| (u64::from(self.cpus()) * u64::from(node) / u64::from(self.nodes.max(1))) as u32;
        at(node)..at(node + 1)
    }
}

/// How the guest's clock follows instructions instead of the host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionClock {
    /// An instruction takes `2^shift` ns.
    pub shift: u8,
    /// While all CPUs wait, the clock leaps to the next timer; otherwise it then goes with the host's.
    pub leaps: bool,
}

/// The TCG plugin to load.
#[derive(Debug, Default)]
pub struct PluginConfig {
    /// Descriptor of the shared object (a memory file will do).
    pub library: Option<OwnedFd>,
    /// Path of the shared object, where there is no descriptor.
    pub path: Option<PathBuf>,
    /// Arguments, `key=value`.
    pub arguments: Vec<(String, String)>,
    /// Descriptors handed to QEMU. `key=N` is added to the arguments for each, with its number.
    pub descriptors: Vec<(String, OwnedFd)>,
}

/// Preparation in the guest ahead of the command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// Nothing: the guest is as a fresh boot leaves it.
    #[default]
    Nothing,
    /// Files that the command will surely read are read ahead, for a tenth of the boot's time at most. A small program
    /// is started too, so that the emulator has translated what every start runs.
    Files,
    /// Files are read ahead as by [`WarmUp::Files`], and the command runs once as a whole, for this time at most.
    Run(Duration),
}

/// Everything that makes a guest.
#[derive(Debug)]
pub struct GuestConfig {
    /// The machine's shape.
    pub shape: GuestShape,
    /// Bytes of memory, by node. Empty: half of what this machine has available, split evenly.
    pub memory: Vec<u64>,
    /// The kernel to boot.
    pub kernel: KernelImage,
    /// Command to run in the guest.
    pub command: GuestCommand,
    /// The plugin that watches.
    pub plugin: Option<PluginConfig>,
    /// The guest's clock: the host's, or the instructions'.
    pub icount: Option<InstructionClock>,
    /// Destination of the files that the command wrote, after its end; otherwise they are thrown away.
    pub keep: Option<PathBuf>,
    /// Ends the guest when the command has run for this time.
    pub timeout: Option<Duration>,
    /// Whether address spaces are laid out at random, as a kernel does by default.
    pub aslr: bool,
    /// Further words for the kernel, behind nearmiss's own.
    pub kernel_arguments: Vec<KernelArgument>,
    /// Preparation ahead of the command.
    pub warm_up: WarmUp,
    /// Which QEMU.
    pub qemu: QemuBinary,
    /// A shared object that the command's programs preload.
    pub preload: Option<Vec<u8>>,
    /// The command's `GLIBC_TUNABLES`, added to those that it has.
    pub libc_tunables: Option<String>,
    /// Directory of saved guests, one of which is restored; it is saved first if there is none for this machine yet.
    /// `None`: the guest is booted.
    pub saved_guests: Option<PathBuf>,
    /// Set by the user's wish for an end while a guest is booted to be saved.
    pub interrupted: Arc<AtomicBool>,
}

impl GuestConfig {
    /// A guest of two CPUs, without a plugin, with the newest kernel and the installed QEMU.
    pub fn new(command: GuestCommand) -> Result<Self, GuestError> {
        Ok(Self {
            shape: GuestShape::flat(2),
            memory: Vec::new(),
            kernel: KernelImage::newest()?,
            command,
            plugin: None,
            icount: None,
            keep: None,
            timeout: None,
            aslr: true,
            kernel_arguments: Vec::new(),
            warm_up: WarmUp::Nothing,
            qemu: QemuBinary::installed()?,
            preload: None,
            libc_tunables: None,
            saved_guests: Some(saved_guests()),
            interrupted: Arc::default(),
        })
    }
}

const MIB: u64 = 1 << 20;
/// The kernel, the agent and a shell fit; so does little else.
const LEAST_MEMORY: u64 = 256 * MIB;
/// More helps no program of the size that one traces, and a guest with more is too large to be saved.
const MOST_BY_DEFAULT: u64 = 12 << 30;

/// A power of two, or one and a half times one: what is available changes from run to run, and guests of equal memory
/// are restored from one saved guest.
fn rounded_down(bytes: u64) -> u64 {
    if bytes < LEAST_MEMORY {
        return bytes; // and too little, which the error reports
    }
    let power = 1 << bytes.ilog2();
    if power + power / 2 <= bytes { power + power / 2 } else { power }
}

/// Bytes by node, rounded down to 2 MiB.
pub(super) fn memory_by_node(requested: &[u64], nodes: u32, available: u64) -> Result<Vec<u64>, GuestError> {
    let nodes = nodes.max(1) as usize;
    let memory = if requested.is_empty() {
        vec![rounded_down((available / 2).min(MOST_BY_DEFAULT)) / nodes as u64; nodes]
    } else {
        requested.to_vec()
    };
    if memory.len() != nodes {
        return Err(GuestError::Config(format!(
            "memory is given for {} nodes, the machine has {nodes}: give one size a node",
            memory.len()
        )));
    }
    let memory: Vec<u64> = memory.iter().map(|bytes| bytes / (2 * MIB) * (2 * MIB)).collect();
    let total: u64 = memory.iter().sum();
    if total < LEAST_MEMORY || memory.contains(&0) {
        return Err(GuestError::TooLittleMemory { have_mib: total / MIB, need_mib: LEAST_MEMORY / MIB });
    }
    if total > available {
        return Err(GuestError::Config(format!(
            "the guest's memory of {} MiB is more than the {} MiB available here: give less with --memory",
            total / MIB,
            available / MIB
        )));
    }
    Ok(memory)
}

/// `MemAvailable`, in bytes.
pub(super) fn available_memory() -> u64 {
    std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(0, |kib| kib * 1024)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_cut_down_with_its_siblings_and_packages() {
        let server = GuestShape { packages: 2, cores: 64, threads: 2, nodes: 8 };
        assert_eq!(server.cut_to(4), GuestShape { packages: 2, cores: 1, threads: 2, nodes: 8 });
        assert_eq!(server.cut_to(1), GuestShape { packages: 1, cores: 1, threads: 1, nodes: 4 });
        let desktop = GuestShape { packages: 1, cores: 8, threads: 1, nodes: 1 };
        assert_eq!(desktop.cut_to(4), GuestShape::flat(4));
    }

    #[test]
    fn every_cpu_has_one_node() {
        let shape = GuestShape { packages: 2, cores: 1, threads: 3, nodes: 4 };
        let all: Vec<u32> = (0..4).flat_map(|node| shape.cpus_of_node(node)).collect();
        assert_eq!(all, (0..6).collect::<Vec<_>>());
    }

    #[test]
    fn a_default_size_of_memory_is_one_of_few() {
        let of = |available: u64| memory_by_node(&[], 1, available * MIB).unwrap()[0] / MIB;
        assert_eq!([512, 800, 22_000, 23_000, 24_700].map(of), [256, 384, 8192, 8192, 12_288]);
        assert_eq!(of(200_000), 12_288);
        assert_eq!(memory_by_node(&[800 * MIB], 1, 4 << 30).unwrap(), [800 * MIB], "a requested size is not rounded");
    }

    #[test]
    fn too_little_memory_is_an_error_with_both_sizes() {
        assert_eq!(memory_by_node(&[], 2, 4 << 30).unwrap(), vec![1 << 30, 1 << 30]);
        let error = memory_by_node(&[], 1, 300 * MIB).unwrap_err().to_string();
        assert!(error.contains("150 MiB") && error.contains("256"), "{error}");
        assert!(memory_by_node(&[1 << 30], 2, 4 << 30).is_err());
        assert!(memory_by_node(&[8 << 30], 1, 4 << 30).is_err());
    }
}
