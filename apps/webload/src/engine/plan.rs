//! Plan of a run.

use crate::arrivals::Spacing;
use crate::laws;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The connections of a run.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// Target address.
    pub to: SocketAddr,
    /// How many there are at once, at most.
    pub count: usize,
    /// Whether each carries one request only.
    pub one_request_each: bool,
    /// From how many loopback addresses, from 127.0.0.1 on; one address leaves the choice to the kernel.
    pub sources: u32,
    /// The client ends a kept connection after a number of requests drawn from Zipf's law over 1 to this number;
    /// 0 leaves connections to the server.
    pub most_uses: u32,
    /// Nanoseconds from client to server, kept by the client itself.
    pub delay_ns: u64,
}

impl Connections {
    /// Returns how many of the wanted source addresses can be used towards `to`: other networks have but one.
    pub fn sources_towards(to: SocketAddr, wanted: u32) -> u32 {
        if to.is_ipv4() && to.ip().is_loopback() { wanted } else { 1 }
    }

    /// Returns how many requests a kept connection carries, by a hash.
    pub(super) fn uses(&self, hash: u64) -> u32 {
        if self.most_uses == 0 { u32::MAX } else { laws::zipf(hash, self.most_uses) }
    }

    /// The source address of the connection with that number.
    pub(super) fn source(&self, number: u64) -> Option<IpAddr> {
        let first = u64::from(u32::from(Ipv4Addr::LOCALHOST));
        let address = u32::try_from(first + number % u64::from(self.sources)).ok()?;
        (self.sources > 1).then(|| IpAddr::V4(Ipv4Addr::from(address)))
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
