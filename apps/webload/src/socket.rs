//! Non-blocking TCP sockets.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Result of an attempt to read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Bytes moved, at least one.
    Bytes(usize),
    /// None for now.
    Later,
    /// None any more: the peer has ended the connection, or it broke.
    Ended,
}

/// Begins a connection; it is made when the socket becomes writable.
pub fn connect(to: SocketAddr, from: Option<IpAddr>) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, FLAGS, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if let Some(from) = from {
        net::bind(&socket, &SocketAddr::new(from, 0))?;
    }
    match net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// A socket that listens on an address.
pub fn listen(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, FLAGS, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, 4096)?;
    Ok(socket)
}

/// The next connection that waits at a listening socket.
pub fn accept(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    let socket = net::accept_with(listener, FLAGS)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

/// Reads what there is.
pub fn read(socket: &OwnedFd, into: &mut [u8]) -> Moved {
    match net::recv(socket, into, RecvFlags::empty()) {
        Ok((_, 0)) => Moved::Ended,
        Ok((_, length)) => Moved::Bytes(length),
        Err(Errno::AGAIN | Errno::INTR) => Moved::Later,
        Err(_) => Moved::Ended,
    }
}

/// Writes what fits.
pub fn write(socket: &OwnedFd, bytes: &[u8]) -> Moved {
    match net::send(socket, bytes, SendFlags::NOSIGNAL) {
        Ok(length) => Moved::Bytes(length),
        Err(Errno::AGAIN | Errno::INTR) => Moved::Later,
        Err(_) => Moved::Ended,
    }
}

/// Ends a connection so that its port is free at once.
pub fn reset(socket: OwnedFd) {
    // Without this the port merely stays in use for a minute.
    let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
}

/// Raises the limit on descriptors as far as allowed, and returns how many there may be.
pub fn descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(1 << 20);
    match setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }) {
        Ok(()) => most,
        Err(_) => limit.current.unwrap_or(1024),
    }
}
