//! One turn of the loop: what timers ended, what the kernel reports.

use super::{CannotRun, Engine, State, Waiting};
use crate::clock::{self, MILLISECOND};
use crate::load::{Answer, Fault, Load};
use crate::socket::{self, Moved};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::cmp::Reverse;

/// How often requests without an answer are looked for.
const LOOK_EVERY: u64 = 50 * MILLISECOND;

impl<L: Load> Engine<L> {
    pub(super) fn turn(&mut self) -> Result<(), CannotRun> {
        let now = clock::now();
        while let Some(&Reverse((at, index, generation))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            if self.slots[index as usize].generation == generation {
                self.wake(index)?;
            }
        }
        self.serve_waiting()?;
        if now >= self.next_look {
            self.give_up(now)?;
            self.next_look = now + LOOK_EVERY;
        }
        self.wait()
    }

    fn wait(&mut self) -> Result<(), CannotRun> {
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        let until = self.next_due.min(timer).min(self.next_look).min(self.phase_ends());
        let timeout = clock::timespec(until.saturating_sub(clock::now()));
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            self.event(event)?;
            self.serve_waiting()?;
        }
        self.events = events;
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), CannotRun> {
        let (tag, flags) = (event.data, event.flags);
        let (index, generation) = (tag.u64() as u32, (tag.u64() >> 32) as u32);
        let slot = &self.slots[index as usize];
        if slot.generation != generation || slot.socket.is_none() {
            return Ok(());
        }
        if slot.state == State::Opening {
            self.opened(index)?;
        } else if !slot.unsent.is_empty() && flags.contains(EventFlags::OUT) {
            self.send_rest(index)?;
        }
        let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(ended | EventFlags::IN) {
            self.receive(index, generation, flags.intersects(ended))?;
        }
        Ok(())
    }

    /// The connection was made, or could not be made.
    fn opened(&mut self, index: u32) -> Result<(), CannotRun> {
        let slot = &mut self.slots[index as usize];
        let Some(socket) = &slot.socket else { return Ok(()) };
        if let Err(error) | Ok(Err(error)) = sockopt::socket_error(socket) {
            return self.refused(index, error);
        }
        self.opening -= 1;
        slot.state = State::Idle;
        if slot.has_request {
            return self.send_when_due(index);
        }
        self.release(index);
        Ok(())
    }

    fn send_when_due(&mut self, index: u32) -> Result<(), CannotRun> {
        let due = self.slots[index as usize].due;
        if due <= clock::now() {
            return self.send(index);
        }
        self.slots[index as usize].state = State::Due;
        self.wake_at(index, due);
        Ok(())
    }

    /// Gives a request to a connection that is free, or to an empty slot.
    pub(super) fn assign(&mut self, index: u32, waiting: Waiting<L::Request>) -> Result<(), CannotRun> {
        let request = waiting.again.unwrap_or_else(|| self.load.pick(waiting.phase));
        let connections = &self.plan.connections;
        // The handshake takes the way there and back, before the request can leave.
        let handshake = if connections.one_request_each { 2 * connections.delay_ns } else { 0 };
        let slot = &mut self.slots[index as usize];
        (slot.due, slot.phase, slot.request) = (waiting.due + handshake, waiting.phase, request);
        (slot.has_request, slot.is_begun, slot.reply) = (true, false, L::Reply::default());
        if slot.socket.is_some() { self.send(index) } else { self.begin_connection(index) }
    }

    /// The connection can carry a request.
    pub(super) fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.socket.is_some() {
            slot.state = State::Idle;
        }
        self.free.push_back(index);
    }

    /// Gives requests that wait to connections that are free.
    pub(super) fn serve_waiting(&mut self) -> Result<(), CannotRun> {
        while !self.waiting.is_empty()
            && let Some(index) = self.free.pop_front()
            && let Some(request) = self.waiting.pop_front()
        {
            self.assign(index, request)?;
        }
        Ok(())
    }

    pub(super) fn send(&mut self, index: u32) -> Result<(), CannotRun> {
        let slot = &mut self.slots[index as usize];
        let Some(socket) = &slot.socket else { return Ok(()) };
        self.outbox.clear();
        self.load.write(&slot.request, &mut self.outbox);
        let late = clock::now().saturating_sub(slot.due);
        self.measures[slot.phase].late.record(late);
        slot.state = State::Busy;
        slot.uses += 1;
        match socket::write(socket, &self.outbox) {
            Moved::Bytes(length) if length == self.outbox.len() => Ok(()),
            Moved::Bytes(length) => {
                slot.unsent.extend_from_slice(&self.outbox[length..]);
                Ok(())
            }
            Moved::Later => {
                slot.unsent.extend_from_slice(&self.outbox);
                Ok(())
            }
            Moved::Ended => self.lost(index),
        }
    }

    fn send_rest(&mut self, index: u32) -> Result<(), CannotRun> {
        let slot = &mut self.slots[index as usize];
        let Some(socket) = &slot.socket else { return Ok(()) };
        match socket::write(socket, &slot.unsent) {
            Moved::Bytes(length) => {
                slot.unsent.drain(..length);
                Ok(())
            }
            Moved::Later => Ok(()),
            Moved::Ended => self.lost(index),
        }
    }

    /// The connection has ended while a request was on it.
    fn lost(&mut self, index: u32) -> Result<(), CannotRun> {
        let slot = &mut self.slots[index as usize];
        // A server may end a kept connection at any time; a request that crossed with the end was never seen.
        let crossed = slot.uses > 1 && !slot.is_begun;
        if !slot.is_begun {
            return if crossed { self.resend(index) } else { self.fault(index, Fault::Closed) };
        }
        match self.load.end(&slot.request, &mut slot.reply) {
            Ok(answer) => self.answered(index, &answer),
            Err(fault) => self.fault(index, fault),
        }
    }

    fn receive(&mut self, index: u32, generation: u32, to_the_end: bool) -> Result<(), CannotRun> {
        loop {
            let slot = &mut self.slots[index as usize];
            let Some(socket) = slot.socket.as_ref().filter(|_| slot.generation == generation) else { return Ok(()) };
            match socket::read(socket, &mut self.inbox) {
                Moved::Later => return Ok(()),
                Moved::Ended => return self.ended(index),
                Moved::Bytes(length) => {
                    self.read(index, length)?;
                    if length < self.inbox.len() && !to_the_end {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn read(&mut self, index: u32, length: usize) -> Result<(), CannotRun> {
        let slot = &mut self.slots[index as usize];
        if slot.state != State::Busy {
            return self.fault(index, Fault::Malformed);
        }
        slot.is_begun = true;
        match self.load.read(&slot.request, &mut slot.reply, &self.inbox[..length]) {
            Ok(None) => Ok(()),
            Ok(Some(answer)) => self.answered(index, &answer),
            Err(fault) => self.fault(index, fault),
        }
    }

    fn ended(&mut self, index: u32) -> Result<(), CannotRun> {
        match self.slots[index as usize].state {
            State::Busy => self.lost(index),
            State::Due => self.fault(index, Fault::Closed),
            _ => self.end(index),
        }
    }

    fn answered(&mut self, index: u32, answer: &Answer) -> Result<(), CannotRun> {
        let now = clock::now();
        let slot = &mut self.slots[index as usize];
        slot.has_request = false;
        self.measures[slot.phase].answer(answer, now.saturating_sub(slot.due));
        if let Some(measure) = self.measures.get_mut(self.phase) {
            measure.counts.answered_in_time += 1;
        }
        let connections = &self.plan.connections;
        if slot.uses >= slot.most_uses && answer.keeps_connection {
            return self.end(index);
        }
        if connections.one_request_each || !answer.keeps_connection {
            return self.retire(index, !answer.keeps_connection || connections.one_request_each);
        }
        if connections.delay_ns == 0 {
            self.release(index);
            return Ok(());
        }
        slot.state = State::Held;
        self.wake_at(index, now + 2 * connections.delay_ns);
        Ok(())
    }
}
