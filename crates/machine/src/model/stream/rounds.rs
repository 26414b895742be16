//! The modelled order: slices that followed one another in the recorder, taken as simultaneous.
//!
//! The recorder's slices are of unequal length. If each CPU had one of them in a round, the CPU with the shorter one
//! would idle for the rest, and two CPUs that use a line all the time would compete for it for a third of theirs. So a
//! round has many slices of each CPU, one behind the other, and a CPU's lead evens out: over one slice each two such
//! CPUs ran at once for 37% of their time, over 64 for 68%.

use crate::model::engine::Engine;
use crate::model::options::ModelError;
use crate::model::stream::replay::Replay;
use crate::model::stream::round::{Round, Slice};
use crate::observer::Observer;
use std::collections::VecDeque;

/// The slices that one CPU executes in a round.
struct Lane {
    cpu: usize,
    /// Slices that are left, by their place in the round.
    slices: VecDeque<usize>,
    /// Next record of the first chunk.
    at: usize,
    /// The CPU's clock when the round began.
    clock: u64,
    /// Cycles that the CPU waited for its waker since.
    waited: u64,
    /// The first slice has begun.
    began: bool,
}

impl<E: Engine, O: Observer> Replay<E, O> {
    /// Merges the slices of the round by cycles since it began.
    pub(in crate::model) fn run_round(&mut self) -> Result<(), ModelError> {
        let is_even = self.round.is_even;
        let mut round = std::mem::replace(&mut self.round, Round { is_even, ..Round::default() });
        let mut lanes = self.lanes(&round);
        while let Some((first, limit)) = self.next_lane(&round, &lanes) {
            let lane = &mut lanes[first];
            let Some(slice) = lane.slices.front().map(|own| &mut round.slices[*own]) else { break };
            self.begin(lane);
            self.run_lane(lane, slice, limit)?;
            if slice.chunks.is_empty() {
                slice.ended = Some(self.lane_time(lane));
                (lane.began, lane.at) = (false, 0);
                lane.slices.pop_front();
                self.wake(&round, &mut lanes);
            }
        }
        let ends = lanes.iter().map(|lane| self.lane_time(lane)).max();
        self.round_began += ends.unwrap_or(0);
        Ok(())
    }

    fn lanes(&self, round: &Round) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = Vec::new();
        for (at, slice) in round.slices.iter().enumerate() {
            match lanes.iter_mut().find(|lane| lane.cpu == slice.cpu) {
                Some(lane) => lane.slices.push_back(at),
                None => lanes.push(Lane {
                    cpu: slice.cpu,
                    slices: VecDeque::from([at]),
                    at: 0,
                    clock: self.clock(slice.cpu),
                    waited: 0,
                    began: false,
                }),
            }
        }
        lanes
    }

    /// Cycles since the round began.
    fn lane_time(&self, lane: &Lane) -> u64 {
        self.clock(lane.cpu) - lane.clock + lane.waited
    }

    /// Returns the lane of the CPU that is least far, and the time of the next one.
    fn next_lane(&self, round: &Round, lanes: &[Lane]) -> Option<(usize, (u64, usize))> {
        let mut first: Option<((u64, usize), usize)> = None;
        let mut limit = (u64::MAX, usize::MAX);
        for (at, lane) in lanes.iter().enumerate().filter(|(_, lane)| self.may_run(round, lane)) {
            let key = (self.lane_time(lane), lane.cpu);
            match first {
                Some((least, _)) if least < key => limit = limit.min(key),
                _ => {
                    limit = first.map_or(limit, |(least, _)| limit.min(least));
                    first = Some((key, at));
                }
            }
        }
        first.map(|(_, at)| (at, limit))
    }

    /// A CPU that was halted was woken by the slice before, which ends first.
    fn may_run(&self, round: &Round, lane: &Lane) -> bool {
        match self.waker(lane) {
            Some(waker) => round.slices[waker].ended.is_some(),
            None => !lane.slices.is_empty(),
        }
    }

    /// Returns the slice that must end before a lane begins its next one.
    fn waker(&self, lane: &Lane) -> Option<usize> {
        let own = lane.slices.front().filter(|_| !lane.began && self.cpus[lane.cpu].halted)?;
        own.checked_sub(1)
    }

    /// Lets CPUs go on after their wakers ended.
    fn wake(&self, round: &Round, lanes: &mut [Lane]) {
        for lane in lanes {
            if let Some(ended) = self.waker(lane).and_then(|waker| round.slices[waker].ended) {
                lane.waited += ended.saturating_sub(self.lane_time(lane));
            }
        }
    }

    /// The CPU begins its next slice, or goes on with it.
    fn begin(&mut self, lane: &mut Lane) {
        if !std::mem::replace(&mut lane.began, true) {
            let time = self.round_began + lane.waited;
            self.lead[lane.cpu] = time as i64 - lane.clock as i64;
        }
    }

    /// Runs a slice until its end, or until its CPU stands behind `limit`.
    fn run_lane(&mut self, lane: &mut Lane, slice: &mut Slice, limit: (u64, usize)) -> Result<(), ModelError> {
        let cpu = lane.cpu;
        while let Some((header, records)) = slice.chunks.front() {
            if lane.at == 0 {
                self.cpus[cpu].context = header.context;
            }
            if lane.at < records.len() {
                let begin = lane.at;
                if self.is_plain {
                    lane.at = self.plain(cpu, records, begin, 1);
                }
                if lane.at == begin {
                    lane.at = self.step(cpu, records, begin, header.seq)?;
                }
            }
            if lane.at >= records.len() {
                self.end_chunk(header);
                lane.at = 0;
                slice.chunks.pop_front();
            }
            if (self.lane_time(lane), cpu) >= limit {
                break;
            }
        }
        Ok(())
    }
}
