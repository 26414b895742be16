//! Whether a server answers.

use crate::Tree;
use std::collections::HashSet;
use std::fs;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// A server on this machine answers at once, or does not answer yet.
const CONNECT: Duration = Duration::from_millis(500);
/// In `/proc/net/tcp`: TCP_LISTEN, include/net/tcp_states.h.
const LISTEN: &str = "0A";
/// In `/proc/net/udp`, of a socket without a peer: TCP_CLOSE.
const NO_PEER: &str = "07";
/// In `/proc/net/unix`: __SO_ACCEPTCON, include/linux/net.h.
const ACCEPTS: u64 = 0x10000;

/// Condition that shows that a server answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// One of the server's processes listens on a TCP or Unix socket; or has bound a UDP socket, and none of them
    /// listens.
    #[default]
    Listens,
    /// The server takes a connection over TCP.
    Tcp(String),
    /// The server takes a connection at this path.
    Unix(PathBuf),
}

impl FromStr for Ready {
    type Err = String;

    /// `HOST:PORT`, or a path.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Ok(Ready::Unix(text.into()));
        }
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        match port.and_then(|(_, port)| port.parse::<u16>().ok()) {
            Some(_) => Ok(Ready::Tcp(text.to_owned())),
            None => Err(format!("`{text}` is neither HOST:PORT nor a path; write for example 127.0.0.1:8080")),
        }
    }
}

/// Result of a look at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The server does not answer.
    Silent,
    /// The server can take datagrams. A server of both kinds may yet listen.
    Datagrams,
    /// The server answers.
    Answers,
}

impl Ready {
    pub(crate) fn look(&self, tree: Tree) -> Readiness {
        match self {
            Ready::Listens => open_to(tree),
            _ if self.connects() => Readiness::Answers,
            _ => Readiness::Silent,
        }
    }

    /// Whether somebody takes a connection at the address, if there is one.
    pub(crate) fn connects(&self) -> bool {
        match self {
            Ready::Listens => false,
            Ready::Tcp(address) => {
                let addresses = address.to_socket_addrs().into_iter().flatten();
                addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
            }
            Ready::Unix(path) => UnixStream::connect(path).is_ok(),
        }
    }

    /// The address, if there is one.
    pub(crate) fn address(&self) -> String {
        match self {
            Ready::Listens => String::new(),
            Ready::Tcp(address) => address.clone(),
            Ready::Unix(path) => path.display().to_string(),
        }
    }

    /// Describes the condition that did not come true.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Ready::Listens => "listened on no TCP or Unix socket and bound no UDP socket".to_owned(),
            _ => format!("took no connection at {}", self.address()),
        }
    }
}

fn open_to(tree: Tree) -> Readiness {
    let processes = tree.processes();
    let Some(first) = processes.first() else { return Readiness::Silent };
    let net = PathBuf::from(format!("/proc/{first}/net"));
    let (listening, bound) = (listening(&net), bound(&net));
    let open: HashSet<u64> = processes.iter().flat_map(|pid| sockets(*pid)).collect();
    match (open.is_disjoint(&listening), open.is_disjoint(&bound)) {
        (false, _) => Readiness::Answers,
        (true, false) => Readiness::Datagrams,
        (true, true) => Readiness::Silent,
    }
}

/// Inodes of the sockets that a process has open.
fn sockets(pid: libc::pid_t) -> impl Iterator<Item = u64> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| {
        let link = fs::read_link(entry.path()).ok()?;
        let inode = link.as_os_str().as_bytes().strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
        std::str::from_utf8(inode).ok()?.parse().ok()
    })
}

/// Returns the inodes in tables of a network namespace, from the lines that have one.
fn inodes(net: &Path, tables: &[&str], inode_of: fn(&str) -> Option<u64>) -> HashSet<u64> {
    let texts = tables.iter().map(|table| fs::read_to_string(net.join(table)).unwrap_or_default());
    texts.flat_map(|text| text.lines().skip(1).filter_map(inode_of).collect::<Vec<_>>()).collect()
}

/// Inodes of the sockets on which somebody listens.
fn listening(net: &Path) -> HashSet<u64> {
    let tcp = inodes(net, &["tcp", "tcp6"], listening_tcp);
    tcp.into_iter().chain(inodes(net, &["unix"], listening_unix)).collect()
}

/// Inodes of the UDP sockets that take datagrams of anybody.
fn bound(net: &Path) -> HashSet<u64> {
    inodes(net, &["udp", "udp6"], bound_udp)
}

fn listening_tcp(line: &str) -> Option<u64> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if *fields.get(3)? == LISTEN { fields.get(9)?.parse().ok() } else { None }
}

/// A socket has a port once it is bound.
fn bound_udp(line: &str) -> Option<u64> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let has_port = !fields.get(1)?.ends_with(":0000");
    if has_port && *fields.get(3)? == NO_PEER { fields.get(9)?.parse().ok() } else { None }
}

fn listening_unix(line: &str) -> Option<u64> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let flags = u64::from_str_radix(fields.get(3)?, 16).ok()?;
    if flags & ACCEPTS != 0 { fields.get(6)?.parse().ok() } else { None }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_read_as_the_kernel_lists_them() {
        let tcp = "   1: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000   0 31337 1 00";
        assert_eq!(listening_tcp(tcp), Some(31337));
        assert_eq!(listening_tcp(&tcp.replace(" 0A ", " 01 ")), None);
        let udp = " 3105: 0100007F:46AA 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000   0 31338 2 00 0";
        assert_eq!(bound_udp(udp), Some(31338));
        assert_eq!((bound_udp(&udp.replace(":46AA", ":0000")), bound_udp(&udp.replace(" 07 ", " 01 "))), (None, None));
        let unix = "0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/a socket";
        assert_eq!(listening_unix(unix), Some(4711));
        assert_eq!(listening_unix(&unix.replace("00010000", "00000000")), None);
    }

    #[test]
    fn an_address_is_a_port_or_a_path() {
        assert_eq!("[::1]:80".parse(), Ok(Ready::Tcp("[::1]:80".to_owned())));
        assert_eq!("/run/x".parse(), Ok(Ready::Unix("/run/x".into())));
        for text in ["80", ":80", "host", "host:http", "host:99999"] {
            assert!(text.parse::<Ready>().is_err(), "{text}");
        }
    }
}
