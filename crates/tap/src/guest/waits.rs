//! Waits of the command when its time was over, as far as sockets show: the agent's raw facts in words.
//!
//! The agent sends, on request, `task process=7 call=45 sockets=1234 name=client` for each task that sleeps in a system
//! call on sockets, the lines of `/proc/net/tcp`, `tcp6`, `udp` and `unix` behind a word that names the file, the lines
//! of `/proc/net/snmp` behind `counts`, and `end`.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Lines that are read; the guest is not trusted.
const MOST_LINES: usize = 1024;
/// Most sentences reported.
const MOST_SENTENCES: usize = 8;
/// States of a TCP socket in `/proc/net/tcp`.
const SYN_SENT: &str = "02";
const LISTEN: &str = "0A";
/// `__SO_ACCEPTCON` in the flags of `/proc/net/unix`.
const ACCEPTS: u64 = 0x10000;

/// The agent's facts, as they come.
#[derive(Debug, Default)]
pub(super) struct Waits {
    lines: usize,
    tasks: Vec<Task>,
    /// Description of a wait on the socket, by inode.
    sockets: HashMap<u64, String>,
    /// Names of the columns of `Tcp:`, then their values.
    counts: Vec<Vec<String>>,
}

#[derive(Debug)]
struct Task {
    process: u32,
    name: String,
    sockets: Vec<u64>,
}

impl Waits {
    /// Takes a line; whether it was the last one.
    pub(super) fn line(&mut self, text: &str) -> bool {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        self.lines += 1;
        match kind {
            _ if self.lines > MOST_LINES => {}
            "task" => self.tasks.extend(task(rest)),
            "tcp" => self.sockets.extend(inet(rest, |from, to, state| match state {
                LISTEN => format!("for somebody to connect to {from}"),
                SYN_SENT => format!("for {to} to take its connection"),
                _ => format!("for {to} at the other end of its connection"),
            })),
            "udp" => self.sockets.extend(inet(rest, |from, _, _| format!("for a datagram at {from}"))),
            "unix" => self.sockets.extend(unix(rest)),
            "counts" => {
                if let Some(columns) = rest.strip_prefix("Tcp: ") {
                    self.counts.push(columns.split(' ').map(str::to_owned).collect());
                }
            }
            _ => {}
        }
        kind == "end"
    }

    /// Returns one sentence a process and socket, and one of connections that no process accepted.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for task in &self.tasks {
            for on in task.sockets.iter().filter_map(|inode| self.sockets.get(inode)) {
                let sentence = format!("`{}` (process {}) waited {on}", task.name, task.process);
                if !sentences.contains(&sentence) && sentences.len() < MOST_SENTENCES {
                    sentences.push(sentence);
                }
            }
        }
        match self.count("AttemptFails") {
            None | Some(0) => {}
            Some(1) => sentences.push("1 attempt to connect over TCP was refused: nobody listened".into()),
            Some(refused) => {
                sentences.push(format!("{refused} attempts to connect over TCP were refused: nobody listened"));
            }
        }
        sentences
    }

    fn count(&self, column: &str) -> Option<u64> {
        let [names, values] = &self.counts[..] else { return None };
        values.get(names.iter().position(|name| name == column)?)?.parse().ok()
    }
}

fn task(text: &str) -> Option<Task> {
    let (facts, name) = text.split_once(" name=")?;
    let fact = |key: &str| facts.split(' ').find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
    let sockets = fact("sockets")?.split(',').filter_map(|inode| inode.parse().ok()).collect();
    // The kernel keeps 15 bytes of a name.
    Some(Task { process: fact("process")?.parse().ok()?, name: name.chars().take(15).collect(), sockets })
}

/// A line of `/proc/net/tcp` or `udp`: number, local, remote, state, …, and the inode as the tenth word.
fn inet(line: &str, words: impl Fn(&str, &str, &str) -> String) -> Option<(u64, String)> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (local, remote) = (address(columns.get(1)?)?, address(columns.get(2)?)?);
    Some((columns.get(9)?.parse().ok()?, words(&local, &remote, columns[3])))
}

/// `0100007F:1A0B` is `127.0.0.1:6667`: words of the machine's byte order, in hexadecimal.
fn address(text: &str) -> Option<String> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(host.get(at..at + 8)?, 16).ok().map(u32::to_le_bytes);
    Some(match host.len() {
        8 => format!("{}:{port}", IpAddr::from(Ipv4Addr::from(word(0)?))),
        32 => {
            let bytes: Vec<u8> = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            format!("[{}]:{port}", Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical())
        }
        _ => return None,
    })
}

/// A line of `/proc/net/unix`: number, references, protocol, flags, type, state, inode, and the path if it has one.
fn unix(line: &str) -> Option<(u64, String)> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let accepts = u64::from_str_radix(columns.get(3)?, 16).ok()? & ACCEPTS != 0;
    let on = match (accepts, columns.get(7)) {
        (true, Some(path)) => format!("for somebody to connect to {}", path.chars().take(108).collect::<String>()),
        (true, None) => "for somebody to connect to a socket without a name".to_owned(),
        (false, _) => "for the other end of a Unix socket".to_owned(),
    };
    Some((columns.get(6)?.parse().ok()?, on))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(lines: &[&str]) -> Vec<String> {
        let mut waits = Waits::default();
        assert!(lines.iter().all(|line| !waits.line(line)) && waits.line("end"));
        waits.sentences()
    }

    #[test]
    fn a_process_is_reported_with_the_wait_of_its_socket() {
        let lines = [
            "task process=7 call=7 sockets=11,12 name=client",
            "task process=8 call=288 sockets=13 name=my server",
            "task process=9 call=0 sockets=14 name=reader",
            "task process=9 call=0 sockets=14 name=reader",
            "task process=10 call=0 sockets=99 name=gone",
            "tcp   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
            "tcp    0: 0100007F:C350 0100007F:18EB 01 00000000:00000000 00:00000000 00000000     0        0 11 1 0 20",
            "tcp    1: 0100007F:C351 0100007F:0050 02 00000001:00000000 01:00000064 00000000     0        0 12 2 0 100",
            "tcp    0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 13 1",
            "unix 0000000000000000: 00000002 00000000 00010000 0001 01 14 /run/server.sock",
            "counts Tcp: RtoAlgorithm MaxConn AttemptFails EstabResets",
            "counts Tcp: 1 -1 31 0",
        ];
        let expected = [
            "`client` (process 7) waited for 127.0.0.1:6379 at the other end of its connection",
            "`client` (process 7) waited for 127.0.0.1:80 to take its connection",
            "`my server` (process 8) waited for somebody to connect to [::1]:8080",
            "`reader` (process 9) waited for somebody to connect to /run/server.sock",
            "31 attempts to connect over TCP were refused: nobody listened",
        ];
        assert_eq!(sentences(&lines), expected);
    }

    #[test]
    fn a_hostile_guest_is_not_believed_at_length() {
        let many: Vec<String> = (0..5000).map(|n| format!("task process={n} call=0 sockets=1 name=x")).collect();
        let mut lines =
            vec!["udp 0: 0100007F:0035 00000000:0000 07 0:0 0:0 0 0 0 1 2", "tcp", "unix 1", "task name=", "?"];
        lines.extend(many.iter().map(String::as_str));
        let reported = sentences(&lines);
        assert_eq!(reported.len(), MOST_SENTENCES);
        assert_eq!(reported[0], "`x` (process 0) waited for a datagram at 127.0.0.1:53");
        assert!(address("F\u{e4}00007:0050").is_none() && address("0100007\u{e4}:0050").is_none());
    }
}
