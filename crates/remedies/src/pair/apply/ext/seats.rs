//! Sets the seats of the command's tasks in the scheduler.

use super::maps::{Maps, SEATS};
use crate::follow::Follows;
use crate::pair::kept::KeptPairs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Gives each task in the table its seat.
#[derive(Debug)]
pub struct Seats {
    maps: Arc<Maps>,
    kept: KeptPairs,
    seated: Vec<i32>,
    period: Duration,
    due: Instant,
    /// Tasks so far.
    pub tasks: usize,
    /// Tasks with a seat.
    pub known: usize,
}

impl Seats {
    /// Makes the seats of a command before its first process runs.
    pub fn new(pid: i32, maps: Arc<Maps>, kept: KeptPairs, period: Duration) -> Self {
        let due = Instant::now() + period;
        let mut seats = Seats { maps, kept, seated: Vec::new(), period, due, tasks: 0, known: 0 };
        seats.admit(pid);
        seats
    }

    fn admit(&mut self, task: i32) {
        let order = self.tasks;
        self.tasks += 1;
        let Some(seat) = self.kept.slot_of(order).filter(|seat| *seat < SEATS) else { return };
        if self.maps.seat(task, seat).is_ok() {
            self.known += 1;
            self.seated.push(task);
        }
    }

    /// A number may come again, for a task that is not ours.
    fn let_go(&mut self) {
        self.due = Instant::now() + self.period;
        let maps = &self.maps;
        self.seated.retain(|task| Path::new("/proc").join(task.to_string()).exists() || maps.unseat(*task).is_err());
    }
}

impl Follows for Seats {
    fn look(&mut self, started: &[i32]) {
        started.iter().for_each(|task| self.admit(*task));
        if Instant::now() >= self.due {
            self.let_go();
        }
    }
}
