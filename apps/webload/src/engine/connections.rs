//! How connections begin and end.

use super::{CannotRun, Engine, Slot, State, Waiting};
use crate::clock::{self, MILLISECOND, SECOND};
use crate::content::mix;
use crate::load::{Fault, Load};
use crate::socket;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::cmp::Reverse;

/// More connections than this are not begun at once: listen queues are short.
const OPENING_AT_ONCE: usize = 100;
/// A refused connection is tried again after this time.
const AGAIN_AFTER: u64 = 100 * MILLISECOND;
/// The server gets this long to end a connection that has carried its one request.
const ENDING_FOR: u64 = SECOND;
/// All kept connections must be made within this time.
const OPEN_WITHIN: u64 = 20 * SECOND;

const WATCHED: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

impl<L: Load> Engine<L> {
    pub(super) fn open_all(&mut self) -> Result<(), CannotRun> {
        let until = clock::now() + OPEN_WITHIN;
        let mut begun = 0;
        while self.free.len() < self.slots.len() {
            while begun < self.slots.len() && self.opening < OPENING_AT_ONCE {
                self.begin_connection(begun as u32)?;
                begun += 1;
            }
            if clock::now() > until || self.last_refusal.is_some() {
                return Err(self.too_few_connections());
            }
            self.turn()?;
        }
        Ok(())
    }

    fn too_few_connections(&self) -> CannotRun {
        let to = self.plan.connections.to;
        let why = self.last_refusal.map_or("they take too long".to_owned(), |error| error.to_string());
        let (made, wanted) = (self.free.len(), self.slots.len());
        CannotRun::NoConnections(format!(
            "{to}: {made} of {wanted} connections could be made ({why}); start the server, or lower --connections"
        ))
    }

    /// Begins a connection in an empty slot; a refusal is tried again later.
    pub(super) fn begin_connection(&mut self, index: u32) -> Result<(), CannotRun> {
        self.begun += 1;
        let connections = &self.plan.connections;
        let opened = socket::connect(connections.to, connections.source(self.begun));
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        (slot.uses, slot.most_uses) = (0, connections.uses(mix(mix(self.plan.seed) ^ self.begun)));
        match opened {
            Ok(socket) => {
                let tag = u64::from(slot.generation) << 32 | u64::from(index);
                epoll::add(&self.epoll, &socket, EventData::new_u64(tag), WATCHED)?;
                slot.socket = Some(socket);
                slot.state = State::Opening;
                self.opening += 1;
                Ok(())
            }
            Err(error) => self.refused(index, error),
        }
    }

    pub(super) fn refused(&mut self, index: u32, error: rustix::io::Errno) -> Result<(), CannotRun> {
        self.last_refusal = Some(error);
        self.fault(index, Fault::Connect)
    }

    /// Gives the request of this connection up, if there is one, and ends the connection.
    pub(super) fn fault(&mut self, index: u32, fault: Fault) -> Result<(), CannotRun> {
        let slot = &mut self.slots[index as usize];
        let had_request = std::mem::take(&mut slot.has_request);
        if had_request {
            self.measures[slot.phase].fault(fault);
        }
        self.drop_socket(index);
        let keeps = !self.plan.connections.one_request_each;
        match fault {
            Fault::Connect if keeps => self.wake_at(index, clock::now() + AGAIN_AFTER),
            _ if keeps => self.begin_connection(index)?,
            _ => self.release(index),
        }
        Ok(())
    }

    /// Ends the socket of a slot in any state.
    pub(super) fn drop_socket(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.state == State::Opening {
            self.opening -= 1;
        }
        if slot.state == State::Idle {
            self.free.retain(|free| *free != index);
        }
        slot.state = State::Empty;
        slot.unsent.clear();
        match slot.socket.take() {
            Some(socket) if !L::SERVER_CLOSES && self.plan.connections.one_request_each => socket::reset(socket),
            _ => {}
        }
    }

    /// The answer is whole, and the connection has carried all that it will.
    pub(super) fn retire(&mut self, index: u32, server_ends: bool) -> Result<(), CannotRun> {
        if server_ends && L::SERVER_CLOSES {
            self.slots[index as usize].state = State::Ending;
            self.wake_at(index, clock::now() + ENDING_FOR);
            return Ok(());
        }
        self.end(index)
    }

    /// The connection is over without a fault; another one takes its place.
    pub(super) fn end(&mut self, index: u32) -> Result<(), CannotRun> {
        self.drop_socket(index);
        if !self.plan.connections.one_request_each {
            return self.begin_connection(index);
        }
        self.release(index);
        Ok(())
    }

    /// The server ended a kept connection before it saw the request: the request goes out on another one.
    pub(super) fn resend(&mut self, index: u32) -> Result<(), CannotRun> {
        let slot = &mut self.slots[index as usize];
        slot.has_request = false;
        let waiting = Waiting { due: slot.due, phase: slot.phase, again: Some(slot.request) };
        self.measures[waiting.phase].counts.sent_again += 1;
        self.waiting.push_front(waiting);
        self.end(index)
    }

    pub(super) fn wake_at(&mut self, index: u32, at: u64) {
        self.timers.push(Reverse((at, index, self.slots[index as usize].generation)));
    }

    /// A timer of this slot is over.
    pub(super) fn wake(&mut self, index: u32) -> Result<(), CannotRun> {
        match self.slots[index as usize].state {
            State::Empty if !self.plan.connections.one_request_each => self.begin_connection(index),
            State::Due => self.send(index),
            State::Held => {
                self.release(index);
                Ok(())
            }
            State::Ending => self.end(index),
            _ => Ok(()),
        }
    }

    /// Gives up requests that wait for an answer or a connection for too long.
    pub(super) fn give_up(&mut self, now: u64) -> Result<(), CannotRun> {
        let limit = self.plan.timeout_ns;
        let is_late = |slot: &Slot<L>| slot.has_request && now.saturating_sub(slot.due) > limit;
        for index in 0..self.slots.len() {
            if is_late(&self.slots[index]) {
                self.fault(index as u32, Fault::Timeout)?;
            }
        }
        while self.waiting.front().is_some_and(|request| now.saturating_sub(request.due) > limit) {
            if let Some(request) = self.waiting.pop_front() {
                self.measures[request.phase].fault(Fault::Timeout);
            }
        }
        Ok(())
    }
}
