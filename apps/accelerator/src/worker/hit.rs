//! The short way: a plain GET with a fresh answer stored. One look-up, one write, no allocation.

use super::Worker;
use super::outgoing::send;
use crate::cache::entry::Entry;
use crate::cache::key::KeyRef;
use crate::message::BodyLength;
pub use crate::message::request::Head;
use crate::message::write::Digits;
use nearmiss_cache_policy::{Answer, RequestDirectives};
use slotmap::DefaultKey;
use std::io::IoSlice;
use std::sync::Arc;

impl Worker {
    /// Answers from the store where nothing is to be considered. False where the request needs the long way.
    pub(super) fn try_hit(&mut self, id: DefaultKey, head: &Head<'_>) -> bool {
        let plain = head.method == "GET" && !head.particular && head.body == BodyLength::None && !head.expects;
        if !plain || head.authority.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return false;
        }
        let key = KeyRef { authority: head.authority, target: head.target };
        let Some(resource) = self.shared.store.get(&key) else { return false };
        let Some(entry) = resource.plain() else { return false };
        if entry.terms.answer(&RequestDirectives::default(), self.now.wall) != Answer::Fresh {
            return false;
        }
        self.counters().hits.one();
        self.send_hit(id, head, entry);
        true
    }

    fn send_hit(&mut self, id: DefaultKey, head: &Head<'_>, entry: &Arc<Entry>) {
        let mut digits = Digits::default();
        let age = digits.of(entry.terms.age(self.now.wall));
        let keep = head.keep && self.drained_ms.is_none();
        let end: &[u8] = match (keep, head.minor) {
            (true, 1) => b"\r\n\r\n",
            (true, _) => b"\r\nconnection: keep-alive\r\n\r\n",
            (false, _) => b"\r\nconnection: close\r\n\r\n",
        };
        let parts = [entry.hit_head(), age, end, entry.body.in_memory(0, entry.body.len())];
        let Some(client) = self.clients.get_mut(id) else { return };
        client.keep = keep;
        let mut sent = send(&client.socket, &parts.map(IoSlice::new), entry.body.is_file()).unwrap_or(0);
        let before_body: usize = parts[..3].iter().map(|part| part.len()).sum();
        if entry.body.is_file() && sent == before_body {
            sent += entry.body.send_file(&client.socket, 0, entry.body.len()).unwrap_or(0);
        }
        let whole = before_body + entry.body.len();
        if sent < whole {
            let mut skip = sent;
            for part in &parts[..3] {
                let skipped = skip.min(part.len());
                client.outgoing.head(&part[skipped..]);
                skip -= skipped;
            }
            client.outgoing.entry(Arc::clone(entry), skip, entry.body.len());
        }
        let peer = client.peer;
        self.counters().bytes_sent.add(sent as u64);
        self.log_hit(peer, head, entry);
        if sent == whole {
            self.after_answer(id);
        }
    }
}
