//! What a run is to do.

use crate::arrivals::Spacing;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The connections of a run.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// Where to.
    pub to: SocketAddr,
    /// How many there are at once, at most.
    pub count: usize,
    /// Whether each carries one request only.
    pub one_request_each: bool,
    /// From how many loopback addresses, from 127.0.0.1 on; one address leaves the choice to the kernel.
    pub sources: u32,
    /// Nanoseconds from client to server, kept by the client itself.
    pub delay_ns: u64,
}

impl Connections {
    /// The source address of the connection with that number.
    pub(super) fn source(&self, number: u64) -> Option<IpAddr> {
        let first = u32::from(Ipv4Addr::LOCALHOST);
        (self.sources > 1)
            .then(|| IpAddr::V4(Ipv4Addr::from(first + u32::try_from(number % u64::from(self.sources)).unwrap_or(0))))
    }
}

/// A part of a run with figures of its own.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Requests a second.
    pub rate: f64,
    /// Nanoseconds after which the phase is over in any case.
    pub most_ns: u64,
    /// Whether the phase is over as soon as the load has filled the cache.
    pub until_filled: bool,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The connections.
    pub connections: Connections,
    /// The phases, one after another without a pause.
    pub phases: Vec<Phase>,
    /// How requests are spaced.
    pub spacing: Spacing,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Nanoseconds after which a request without an answer is given up.
    pub timeout_ns: u64,
    /// Nanoseconds for which answers are awaited after the last phase.
    pub grace_ns: u64,
}
