//! Listening sockets: one a thread and address, so that the kernel spreads the connections.

use crate::PROGRAM;
use nearmiss_usage::report;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("listen {address}: {error}; choose another address, or end who has it")]
pub struct ListenError {
    address: SocketAddr,
    error: std::io::Error,
}

/// Opens the sockets of each thread, and prints on standard output where it listens.
pub fn open(addresses: &[SocketAddr], threads: usize) -> Result<Vec<Vec<TcpListener>>, ListenError> {
    let mut sockets: Vec<Vec<TcpListener>> = (0..threads).map(|_| Vec::new()).collect();
    for address in addresses {
        let failed = |error| ListenError { address: *address, error };
        // Sockets that share a port would share it with another process, too, without a warning.
        bound(*address, false).map_err(failed)?;
        let mut actual = *address;
        for of_thread in &mut sockets {
            let socket = bound(actual, true).and_then(listening).map_err(failed)?;
            actual = socket.local_addr().unwrap_or(actual);
            of_thread.push(socket);
        }
        // The output may have no reader.
        let _unread = writeln!(std::io::stdout(), "nearmiss-accelerator: listening on {actual}").is_err();
    }
    Ok(sockets)
}

fn bound(address: SocketAddr, shared: bool) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

fn listening(socket: Socket) -> std::io::Result<TcpListener> {
    socket.listen(4096)?;
    Ok(socket.into())
}

/// Raises the limit to enough descriptors for so many connections, each with one to an origin. A lower limit of the
/// machine is taken.
pub fn raise_descriptor_limit(connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = (connections as u64 * 2 + 256).min(limit.maximum.unwrap_or(u64::MAX));
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }) {
        report(PROGRAM, format_args!("descriptors: the limit stays as it is: {error}"));
    }
}
