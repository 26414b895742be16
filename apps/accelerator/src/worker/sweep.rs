//! Deadlines. They are coarse, so that no timer is set or moved for a request: all connections are looked at four times
//! a second.

use super::Worker;
use crate::message::Refusal;
use http::StatusCode;
use slotmap::DefaultKey;

impl Worker {
    pub(super) fn sweep(&mut self) {
        let now = self.now.ms;
        let late: Vec<DefaultKey> =
            self.clients.iter().filter(|(_, c)| c.deadline_ms <= now).map(|(id, _)| id).collect();
        late.into_iter().for_each(|id| self.late_client(id));
        let late: Vec<DefaultKey> =
            self.fetches.iter().filter(|(_, f)| f.deadline_ms <= now).map(|(id, _)| id).collect();
        late.into_iter().for_each(|id| self.late_fetch(id));
        self.log.flush(&self.live);
        self.accept_again();
    }

    fn late_client(&mut self, id: DefaultKey) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if client.lingers || client.is_idle() {
            return self.close_client(id);
        }
        let waits_for_origin = client.exchange.as_ref().is_some_and(|exchange| exchange.upload.is_none());
        if waits_for_origin && !client.outgoing.is_blocked() {
            // The fetch has a deadline of its own.
            client.deadline_ms = u64::MAX;
            return;
        }
        self.counters().timeouts.one();
        let Some(client) = self.clients.get_mut(id) else { return };
        if !client.outgoing.is_empty() {
            return self.close_client(id);
        }
        client.keep = false;
        let late = Refusal { status: StatusCode::REQUEST_TIMEOUT, why: "the request did not come in time" };
        let Some(exchange) = client.exchange.as_mut() else {
            self.refuse(id, late);
            return self.client_ready(id);
        };
        let (flow, fetch) = (exchange.flow.take(), exchange.fetch.take());
        if let Some(flow) = flow {
            self.leave_flow(id, &flow);
            fetch.into_iter().for_each(|fetch| self.client_left(fetch, &flow));
        }
        self.own_answer(id, late.status, late.why);
        self.client_ready(id);
    }

    fn late_fetch(&mut self, id: DefaultKey) {
        let Some(fetch) = self.fetches.get(id) else { return };
        if fetch.job.is_none() {
            return self.drop_connection(id);
        }
        if fetch.paused {
            return;
        }
        self.counters().timeouts.one();
        self.fail(id, StatusCode::GATEWAY_TIMEOUT, "the origin did not answer in time");
    }
}
