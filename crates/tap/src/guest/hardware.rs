//! The machine that a guest's kernel sees, and the options of QEMU that make it.

use std::os::fd::OwnedFd;

use super::config::{GuestShape, InstructionClock};
use super::qemu::QemuBinary;

/// Machine that the guest's kernel sees, and its arguments.
pub(super) struct Hardware<'a> {
    pub(super) qemu: &'a QemuBinary,
    pub(super) shape: GuestShape,
    pub(super) memory: &'a [(u64, OwnedFd)],
    pub(super) icount: Option<InstructionClock>,
    pub(super) kernel_arguments: String,
}

impl Hardware<'_> {
    /// The options that make the machine, without those that name a descriptor.
    pub(super) fn machine_arguments(&self) -> Vec<String> {
        let shape = self.shape;
        let mut list: Vec<String> = Vec::new();
        let mut add = |option: &str, value: String| list.extend([option.into(), value]);
        // The oldest release's machine: later ones have it too, and its processor's leaves are the same under all.
        add("-M", "pc-q35-7.2,usb=off,smbus=off,sata=off,vmport=off,hpet=off".into());
        // One thread runs the CPUs in turn: the recorded order, its slices and the clock by instructions rest on it.
        add("-accel", "tcg,thread=single".into());
        add("-cpu", self.qemu.guest_cpu());
        add(
            "-smp",
            format!("{},sockets={},cores={},threads={}", shape.cpus(), shape.packages, shape.cores, shape.threads),
        );
        let total: u64 = self.memory.iter().map(|(bytes, _)| bytes).sum();
        add("-m", format!("{}k", total / 1024));
        for node in 0..shape.nodes {
            let cpus = shape.cpus_of_node(node);
            let cpus = if cpus.is_empty() { String::new() } else { format!(",cpus={}-{}", cpus.start, cpus.end - 1) };
            add("-numa", format!("node,nodeid={node},memdev=m{node}{cpus}"));
        }
        if let Some(clock) = self.icount {
            let sleep = if clock.leaps { "off" } else { "on" };
            add("-icount", format!("shift={},sleep={sleep}", clock.shift));
        }
        list
    }
}
