//! New connections, and the end of taking them.

use super::Worker;
use super::client::Client;
use crate::engine::Interest;
use slotmap::{DefaultKey, Key};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// Connections that one listener gives in one turn.
const A_TURN: usize = 256;

/// Returns whether an accept fails for want of descriptors or memory, so that the next one fails too.
fn is_shortage(error: &std::io::Error) -> bool {
    let codes = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

impl Worker {
    /// Accepts what waits although no event announces it: where descriptors had run out, none does.
    pub(super) fn accept_again(&mut self) {
        for number in 0..self.listeners.len() {
            self.engine.watch(self.listeners[number].as_fd(), Interest::READ);
            self.accept(number);
        }
    }

    pub(super) fn accept(&mut self, number: usize) {
        for _ in 0..A_TURN {
            let Some(listener) = self.listeners.get(number) else { return };
            match listener.accept() {
                Ok((socket, peer)) => self.take(socket, peer),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                // An engine that reports states would report this listener without an end.
                Err(error) if is_shortage(&error) => {
                    return self.engine.watch(listener.as_fd(), Interest { read: false, write: false });
                }
                // The client has gone already.
                Err(_) => {}
            }
        }
        // An edge is reported once: what is left is taken at the next turn.
        let waker = crate::cache::flow::Waker { worker: self.me, token: number as u64 };
        self.shared.wake(self.me, waker);
    }

    fn take(&mut self, socket: TcpStream, peer: SocketAddr) {
        let limits = &self.live.config.limits;
        let open = self.shared.connections.fetch_add(1, Ordering::Relaxed);
        let usable =
            open < limits.connections && socket.set_nonblocking(true).is_ok() && socket.set_nodelay(true).is_ok();
        if !usable {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.counters().connections_refused.one();
            return;
        }
        let deadline = self.after(self.live.config.timeouts.idle);
        let id = self.clients.insert(Client::new(socket.into(), peer, deadline));
        if self.engine.add(self.clients[id].socket.as_fd(), id.data().as_ffi(), Interest::READ).is_err() {
            self.close_client(id);
            return;
        }
        self.counters().connections.one();
    }

    /// Returns how long this client may stay without a request: shorter the nearer the connections are to their limit.
    pub(super) fn idle_time(&self) -> std::time::Duration {
        let config = &self.live.config;
        let (from, most) = (config.limits.shorten_from, config.limits.connections);
        let open = self.shared.connections.load(Ordering::Relaxed);
        if open <= from || most <= from {
            return config.timeouts.idle;
        }
        let left = most.saturating_sub(open) as f64 / (most - from) as f64;
        config.timeouts.idle.mul_f64(left.max(0.02))
    }

    /// Takes what is waiting at the door, shuts it, and sends idle clients away.
    pub(super) fn begin_drain(&mut self) {
        (0..self.listeners.len()).for_each(|number| self.accept(number));
        for listener in std::mem::take(&mut self.listeners) {
            self.engine.remove(listener.as_fd());
        }
        self.drained_ms = Some(self.after(self.live.config.timeouts.drain));
        let idle: Vec<DefaultKey> = self.clients.iter().filter(|(_, c)| c.is_idle()).map(|(id, _)| id).collect();
        idle.into_iter().for_each(|id| self.close_client(id));
    }
}
