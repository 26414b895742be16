//! A request's body on its way from the client to the fetch.

use super::Worker;
use super::fetch::chunk;
use crate::message::{BodyLength, Refusal};
use http::StatusCode;
use slotmap::DefaultKey;

/// Bytes by which the origin may be behind the client that uploads.
const BEHIND_MOST: usize = 256 << 10;

impl Worker {
    /// Hands on what the client sent, as far as the origin takes it.
    pub(super) fn pump_upload(&mut self, id: DefaultKey) {
        while self.wants_body(id) {
            let mut room = std::mem::take(&mut self.room);
            let Some(client) = self.clients.get_mut(id) else { break };
            let read = match client.input.is_empty() {
                true => client.receive(&mut room),
                false => take_input(&mut client.input, &mut room),
            };
            let at_end = client.at_end;
            let outcome = if read > 0 { self.take_body(id, &room[..read]) } else { Ok(()) };
            self.room = room;
            match outcome {
                Err(refusal) => return self.break_upload(id, refusal),
                Ok(()) if read == 0 && at_end => return self.close_client(id),
                Ok(()) if read == 0 => return,
                Ok(()) => {}
            }
        }
    }

    fn wants_body(&self, id: DefaultKey) -> bool {
        let Some(exchange) = self.clients.get(id).and_then(|client| client.exchange.as_ref()) else { return false };
        let Some(fetch) = exchange.fetch.and_then(|fetch| self.fetches.get(fetch)) else { return false };
        exchange.upload.is_some() && fetch.out.len() - fetch.out_at < BEHIND_MOST
    }

    fn take_body(&mut self, id: DefaultKey, data: &[u8]) -> Result<(), Refusal> {
        let limit = self.live.config.limits.body;
        let deadline = self.after(self.live.config.timeouts.body);
        let Some(client) = self.clients.get_mut(id) else { return Ok(()) };
        client.deadline_ms = deadline;
        let Some(exchange) = client.exchange.as_deref_mut() else { return Ok(()) };
        let Some(fetch_id) = exchange.fetch else { return Ok(()) };
        let (Some(fetch), Some(decoder)) = (self.fetches.get_mut(fetch_id), &mut exchange.upload) else {
            return Ok(());
        };
        let chunked = exchange.request.body == BodyLength::Chunked;
        let mut at = 0;
        while at < data.len() && !decoder.done() {
            let step = decoder.step(&data[at..])?;
            let content = &data[at..][step.content];
            exchange.taken += content.len() as u64;
            chunk(&mut fetch.out, content, chunked);
            at += step.used;
        }
        if exchange.taken > limit {
            return Err(Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, why: "the body is too long" });
        }
        if decoder.done() {
            if chunked {
                fetch.out.extend_from_slice(b"0\r\n");
                fetch.out.extend_from_slice(&decoder.trailers);
            }
            exchange.upload = None;
            if let Some(job) = &mut fetch.job {
                job.uploader = None;
            }
        }
        client.input.extend_from_slice(&data[at..]);
        let waker = self.fetch_waker(fetch_id);
        self.shared.wake(self.me, waker);
        Ok(())
    }

    /// The body is not readable: the origin gets no whole request, and the client gets the refusal.
    fn break_upload(&mut self, id: DefaultKey, refusal: Refusal) {
        self.counters().requests_refused.one();
        let Some(client) = self.clients.get_mut(id) else { return };
        let answered = !client.outgoing.is_empty();
        client.keep = false;
        let Some(exchange) = &mut client.exchange else { return };
        let (flow, fetch) = (exchange.flow.take(), exchange.fetch.take());
        if let Some(flow) = flow {
            self.leave_flow(id, &flow);
            fetch.into_iter().for_each(|fetch| self.client_left(fetch, &flow));
        }
        if answered { self.close_client(id) } else { self.own_answer(id, refusal.status, refusal.why) }
    }

    /// The origin took all there was.
    pub(super) fn resume_upload(&mut self, id: DefaultKey) {
        let waker = self.client_waker(id);
        self.shared.wake(self.me, waker);
    }
}

fn take_input(input: &mut Vec<u8>, room: &mut [u8]) -> usize {
    let size = input.len().min(room.len());
    room[..size].copy_from_slice(&input[..size]);
    input.drain(..size);
    size
}
