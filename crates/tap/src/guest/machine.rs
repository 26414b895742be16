//! How a guest's machine is started.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::arguments::{PORTS, QemuPlan, Start};
use super::config::PluginConfig;
use super::error::{GuestError, Tried};
use super::file_server::FileServer;
use super::guardian::{Guardian, Reports, connected_to_listener};
use super::hardware::Hardware;

/// How a machine comes to a guest that waits for its command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Boot,
    Save,
    Restore,
}

/// A machine that runs.
pub(super) struct Running {
    pub(super) guardian: Guardian,
    pub(super) reports: Reports,
    pub(super) console: UnixStream,
    pub(super) ports: [UnixStream; 4],
    /// QEMU's monitor, but for a guest that boots.
    pub(super) monitor: Option<UnixStream>,
}

impl Hardware<'_> {
    /// Starts QEMU, and the file server where there is one.
    pub(super) fn start(
        &self,
        purpose: Purpose,
        kernel: &OwnedFd,
        initramfs: &OwnedFd,
        plugin: Option<&PluginConfig>,
    ) -> Result<Running, GuestError> {
        let (console, console_inside) = UnixStream::pair().tried("socketpair")?;
        let (monitor, monitor_inside) = UnixStream::pair().tried("socketpair")?;
        let mut ports = Vec::new();
        let mut ports_inside: Vec<OwnedFd> = Vec::new();
        for _ in PORTS {
            let (outside, inside) = UnixStream::pair().tried("socketpair")?;
            ports.push(outside);
            ports_inside.push(inside.into());
        }
        let (file_client, file_listener) = connected_to_listener()?;
        let monitor_inside = monitor_inside.into();
        let start = match purpose {
            Purpose::Boot => Start::Boot { files: &file_client },
            Purpose::Save => Start::Save { monitor: &monitor_inside },
            Purpose::Restore => Start::Restore { monitor: &monitor_inside, files: &file_client },
        };
        let console_inside = console_inside.into();
        let plan = QemuPlan {
            hardware: self,
            kernel,
            initramfs,
            plugin,
            console: &console_inside,
            ports: &ports_inside,
            start,
        };
        let server = match purpose {
            Purpose::Save => None,
            _ => Some(FileServer::new(self.qemu, &file_listener)?),
        };
        let (guardian, reports) = Guardian::start(server.as_ref().map(FileServer::program).as_ref(), &plan.program())?;
        // The other ends are dropped here: only QEMU may hold them, or its death would not be noticed.
        Ok(Running {
            guardian,
            reports,
            console,
            ports: ports.try_into().map_err(|_| GuestError::Config("the number of ports is fixed".into()))?,
            monitor: (purpose != Purpose::Boot).then_some(monitor),
        })
    }
}
