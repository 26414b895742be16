//! The emulator's command line, and the guest kernel's.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use super::config::PluginConfig;
use super::guardian::Program;
use super::hardware::Hardware;
use super::kernel_argument::KernelArgument;
use super::memory_file::inherited_path;
use super::qemu::QemuBinary;

/// The virtio-serial ports, in the order of their numbers, which begin at 1.
pub(super) const PORTS: [&str; 4] = ["control", "input", "output", "error"];

/// The bus that the file server of a restored guest is plugged into.
pub(super) const SLOT: &str = "files-slot";

/// The file server's device, but for the bus.
pub(super) const FILES_DEVICE: &str = "vhost-user-fs-pci";
pub(super) const FILES_TAG: &str = "root";
pub(super) const FILES_QUEUE: u32 = 1024;

/// Kind of start: whether a guest is a saved one.
#[derive(Clone, Copy)]
pub(super) enum Start<'a> {
    /// The guest boots and has its file server from the start.
    Boot { files: &'a OwnedFd },
    /// The guest boots to be saved, which no guest with a file server can be.
    Save { monitor: &'a OwnedFd },
    /// The guest is restored, and its file server is plugged in.
    Restore { monitor: &'a OwnedFd, files: &'a OwnedFd },
}

impl<'a> Start<'a> {
    fn files(self) -> Option<&'a OwnedFd> {
        match self {
            Self::Boot { files } | Self::Restore { files, .. } => Some(files),
            Self::Save { .. } => None,
        }
    }

    fn monitor(self) -> Option<&'a OwnedFd> {
        match self {
            Self::Save { monitor } | Self::Restore { monitor, .. } => Some(monitor),
            Self::Boot { .. } => None,
        }
    }
}

/// Inputs of QEMU's start. Descriptors are inherited.
pub(super) struct QemuPlan<'a> {
    pub(super) hardware: &'a Hardware<'a>,
    pub(super) kernel: &'a OwnedFd,
    pub(super) initramfs: &'a OwnedFd,
    pub(super) plugin: Option<&'a PluginConfig>,
    pub(super) console: &'a OwnedFd,
    pub(super) ports: &'a [OwnedFd],
    pub(super) start: Start<'a>,
}

impl QemuPlan<'_> {
    /// QEMU under `env`, which hands the plugin its interface's version (`NM_QEMU_API_VARIABLE`).
    pub(super) fn program(&self) -> Program {
        let qemu = self.hardware.qemu;
        let mut arguments = vec![format!("NEARMISS_QEMU_API={}", qemu.plugin_api()), qemu.path.display().to_string()];
        arguments.extend(self.arguments());
        Program { path: "/usr/bin/env".into(), arguments, descriptors: self.descriptors() }
    }

    fn arguments(&self) -> Vec<String> {
        let mut list: Vec<String> = vec!["-name".into(), "nearmiss,debug-threads=on".into()];
        for (node, (bytes, file)) in self.hardware.memory.iter().enumerate() {
            let path = inherited_path(file);
            list.push("-object".into());
            list.push(format!("memory-backend-file,id=m{node},mem-path={path},size={bytes},share=on"));
        }
        list.extend(self.hardware.machine_arguments());
        let mut add = |option: &str, value: String| list.extend([option.into(), value]);
        add("-kernel", inherited_path(self.kernel));
        add("-initrd", inherited_path(self.initramfs));
        add("-append", self.hardware.kernel_arguments.clone());
        if let Some(plugin) = self.plugin {
            add("-plugin", plugin_argument(plugin));
        }
        add("-chardev", format!("socket,id=console,fd={}", self.console.as_raw_fd()));
        add("-serial", "chardev:console".into());
        if let Some(files) = self.start.files() {
            add("-chardev", format!("socket,id=files,fd={}", files.as_raw_fd()));
        }
        match self.start {
            Start::Boot { .. } => {
                add("-device", format!("{FILES_DEVICE},chardev=files,tag={FILES_TAG},queue-size={FILES_QUEUE}"));
            }
            Start::Save { .. } | Start::Restore { .. } => add("-device", format!("pcie-root-port,id={SLOT}")),
        }
        add("-device", format!("virtio-serial-pci,id=ports,max_ports={}", PORTS.len() + 1));
        for ((number, name), socket) in (1..).zip(PORTS).zip(self.ports) {
            add("-chardev", format!("socket,id={name},fd={}", socket.as_raw_fd()));
            add("-device", format!("virtserialport,bus=ports.0,nr={number},chardev={name},name=nearmiss.{name}"));
        }
        if let Some(monitor) = self.start.monitor() {
            add("-chardev", format!("socket,id=monitor,fd={}", monitor.as_raw_fd()));
            add("-mon", "chardev=monitor,mode=control".into());
        }
        if let Start::Restore { .. } = self.start {
            add("-incoming", "defer".into());
            list.push("-S".into());
        }
        let mut add = |option: &str, value: String| list.extend([option.into(), value]);
        add("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny".into());
        for flag in ["-nodefaults", "-no-user-config", "-no-reboot"] {
            list.push(flag.into());
        }
        list.extend(["-display".into(), "none".into(), "-monitor".into(), "none".into()]);
        list
    }

    /// The descriptors that QEMU needs.
    fn descriptors(&self) -> Vec<i32> {
        let mut list: Vec<i32> = self.hardware.memory.iter().map(|(_, file)| file.as_raw_fd()).collect();
        list.extend([self.kernel, self.initramfs, self.console].map(AsRawFd::as_raw_fd));
        list.extend(self.ports.iter().map(AsRawFd::as_raw_fd));
        list.extend([self.start.files(), self.start.monitor()].into_iter().flatten().map(AsRawFd::as_raw_fd));
        if let Some(plugin) = self.plugin {
            list.extend(plugin.library.iter().map(AsRawFd::as_raw_fd));
            list.extend(plugin.descriptors.iter().map(|(_, file)| file.as_raw_fd()));
        }
        list
    }
}

fn plugin_argument(plugin: &PluginConfig) -> String {
    // QEMU takes a doubled comma for one of the value's own.
    let escape = |text: &str| text.replace(',', ",,");
    let path = match (&plugin.library, &plugin.path) {
        (Some(library), _) => inherited_path(library),
        (None, path) => path.as_deref().unwrap_or(Path::new("")).display().to_string(),
    };
    let mut argument = format!("file={}", escape(&path));
    for (key, value) in &plugin.arguments {
        argument.push_str(&format!(",{key}={}", escape(value)));
    }
    for (key, file) in &plugin.descriptors {
        argument.push_str(&format!(",{key}={}", file.as_raw_fd()));
    }
    argument
}

/// The kernel's command line: our words, then the user's.
pub(super) fn kernel_arguments(qemu: &QemuBinary, aslr: bool, further: &[KernelArgument]) -> String {
    let mut line = String::from(
        "console=ttyS0 quiet loglevel=3 panic=-1 oops=panic clocksource=tsc tsc=reliable nokaslr mitigations=off \
         no5lvl no_timer_check random.trust_cpu=on cryptomgr.notests audit=0 rdinit=/init",
    );
    if qemu.spoils_flags() {
        line.push_str(" clearcpuid=cx16");
    }
    if !aslr {
        line.push_str(" norandmaps");
    }
    for argument in further {
        line.push_str(&format!(" {argument}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_argument_keeps_its_commas() {
        let plugin = PluginConfig {
            path: Some("/tmp/a,b.so".into()),
            arguments: vec![("events".into(), "x,y".into())],
            ..PluginConfig::default()
        };
        assert_eq!(plugin_argument(&plugin), "file=/tmp/a,,b.so,events=x,,y");
    }

    #[test]
    fn the_kernel_leaves_out_what_the_emulator_does_wrong() {
        let line = |major| kernel_arguments(&QemuBinary { path: "qemu".into(), version: (major, 2) }, true, &[]);
        assert!(line(7).ends_with(" clearcpuid=cx16") && !line(8).contains("clearcpuid"), "{}", line(7));
    }
}
