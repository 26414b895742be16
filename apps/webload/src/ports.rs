//! How many connections the ports of this machine allow.

use crate::engine::Connections;
use crate::outcome::Problem;
use std::net::SocketAddr;

const RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Linux's default range.
const USUAL_RANGE: (usize, usize) = (32_768, 60_999);

/// Refuses more connections towards `to` than the source addresses have ports.
pub fn check(to: SocketAddr, connections: usize, sources: u32) -> Result<(), Problem> {
    let text = std::fs::read_to_string(RANGE_FILE).unwrap_or_default();
    check_within(to, connections, sources, ports(&text))
}

/// Returns how many ports the kernel's text names.
fn ports(text: &str) -> usize {
    let mut numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
    let (first, last) = numbers.next().zip(numbers.next()).unwrap_or(USUAL_RANGE);
    (last + 1).saturating_sub(first)
}

fn check_within(to: SocketAddr, connections: usize, wanted: u32, ports: usize) -> Result<(), Problem> {
    let sources = Connections::sources_towards(to, wanted);
    let most = ports.saturating_mul(sources as usize);
    if connections <= most {
        return Ok(());
    }
    let more = if to.is_ipv4() && to.ip().is_loopback() { ", or more --sources (at most 250)" } else { "" };
    Err(Problem::Input(format!(
        "--connections {connections}: source addresses used: {sources}, with {ports} ports each ({RANGE_FILE}), so at \
         most {most} connections to {to}; lower --connections{more}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(to: &str, connections: usize, sources: u32) -> Option<String> {
        let to = to.parse().expect("an address");
        check_within(to, connections, sources, ports("32768\t60999\n")).err().map(|problem| problem.to_string())
    }

    #[test]
    fn each_source_address_has_its_ports() {
        assert_eq!((ports("32768\t60999\n"), ports("1024 1024"), ports("")), (28_232, 1, 28_232));
        assert_eq!(refused("127.0.0.1:80", 28_232, 1), None);
        assert_eq!(refused("127.0.0.1:80", 56_464, 2), None);
        let near = refused("127.0.0.1:80", 28_233, 1).expect("refused");
        assert!(near.contains("at most 28232 connections") && near.contains("--sources"), "{near}");
        let far = refused("192.0.2.1:80", 28_233, 9).expect("refused");
        assert!(far.contains("at most 28232 connections") && !far.contains("--sources"), "{far}");
    }
}
