//! The servers behind: which of them gets a request, and whether they are well.

use crate::config::Origin;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// One server.
#[derive(Debug)]
pub struct Server {
    /// As configured.
    pub config: Origin,
    well: AtomicBool,
}

impl Server {
    /// Returns whether the last look or request found the server well.
    pub fn is_well(&self) -> bool {
        self.well.load(Ordering::Relaxed)
    }

    /// Notes how the server was found. True where that is news.
    pub fn found(&self, well: bool) -> bool {
        self.well.swap(well, Ordering::Relaxed) != well
    }

    /// Connects, and requests the health path where there is one.
    pub fn look(&self, timeout: Duration) -> bool {
        self.probe(timeout).unwrap_or(false)
    }

    fn probe(&self, timeout: Duration) -> std::io::Result<bool> {
        let mut socket = TcpStream::connect_timeout(&self.config.address, timeout)?;
        let Some(path) = &self.config.health else { return Ok(true) };
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let host = self.config.address;
        write!(socket, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut line = [0; 12];
        socket.read_exact(&mut line)?;
        Ok(line.starts_with(b"HTTP/1.") && matches!(line[9], b'2' | b'3'))
    }
}

/// All configured servers, and whose turn is next.
#[derive(Debug)]
pub struct Origins {
    servers: Vec<Arc<Server>>,
    next: AtomicUsize,
}

impl Origins {
    /// Creates the configured servers; a server that was there before keeps its state.
    pub fn new(configured: &[Origin], before: Option<&Origins>) -> Self {
        let known = |config: &Origin| {
            let same = before?.servers.iter().find(|server| server.config == *config)?;
            Some(Arc::clone(same))
        };
        let new = |config: &Origin| Arc::new(Server { config: config.clone(), well: AtomicBool::new(true) });
        let servers = configured.iter().map(|config| known(config).unwrap_or_else(|| new(config))).collect();
        Origins { servers, next: AtomicUsize::new(0) }
    }

    /// Returns the next server in turn that is not among `tried`: one that is well, or else any.
    pub fn pick(&self, tried: &[Arc<Server>]) -> Option<Arc<Server>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.servers.len();
        let untried = || {
            (0..count)
                .map(|step| &self.servers[(turn + step) % count])
                .filter(|server| !tried.iter().any(|other| Arc::ptr_eq(other, server)))
        };
        untried().find(|server| server.is_well()).or_else(|| untried().next()).cloned()
    }

    /// Returns all configured servers.
    pub fn all(&self) -> &[Arc<Server>] {
        &self.servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_well_take_turns_and_the_sick_come_last() {
        let origin = |port: u16| Origin { address: ([127, 0, 0, 1], port).into(), health: None };
        let origins = Origins::new(&[origin(1), origin(2), origin(3)], None);
        let port = |tried: &[Arc<Server>]| origins.pick(tried).map(|server| server.config.address.port());
        assert_eq!([port(&[]), port(&[]), port(&[]), port(&[])], [Some(1), Some(2), Some(3), Some(1)]);
        assert!(origins.all()[1].found(false) && !origins.all()[1].found(false));
        assert_eq!([port(&[]), port(&[]), port(&[])], [Some(3), Some(3), Some(1)]);
        assert_eq!(port(&origins.all()[..1]), Some(3));
        assert_eq!(port(&[Arc::clone(&origins.all()[0]), Arc::clone(&origins.all()[2])]), Some(2));
        assert_eq!(port(origins.all()), None);
        let after = Origins::new(&[origin(2), origin(4)], Some(&origins));
        assert_eq!(after.all().iter().map(|server| server.is_well()).collect::<Vec<_>>(), [false, true]);
    }
}
