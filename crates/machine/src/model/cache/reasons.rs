//! Reasons why a line is not there: its state in the shadow, and the instruction to blame. Kept only if reasons are
//! requested.

use super::frame::Frame;
use super::history::{History, Standing};
use super::shadow::NONE;
use super::{Cache, DIRTY, Missed, REUSED, Removed};
use nearmiss_record::model::MissClass;
use nearmiss_record::reference::Kind;

impl Cache {
    pub(super) fn shadow_remove(&mut self, line: u32) {
        let time = self.history(line).time();
        if self.shadow.holds(time) {
            self.shadow.remove(time);
            self.history[line as usize].set_time(0);
        }
    }

    /// The line is the newest of the shadow from now on. Whether it was there, and its history until now.
    #[inline(always)]
    pub(super) fn shadow_touch(&mut self, line: u32) -> (bool, History) {
        if !self.reasons {
            return (false, self.history(line));
        }
        if self.shadow.is_full() {
            self.tidy_shadow();
        }
        let history = &mut self.history[line as usize];
        let before = *history;
        let (there, time) = self.shadow.request(before.time(), line);
        history.set_time(time);
        (there, before)
    }

    #[cold]
    fn tidy_shadow(&mut self) {
        let history = &mut self.history;
        if self.shadow.begins_anew() {
            history.iter_mut().for_each(|line| line.set_time(0));
        }
        self.shadow.tidy(|line, time| history[line as usize].set_time(time));
    }

    /// The line's place in the shadow after a request for it; whether it was there, and its history. An exclusive cache
    /// hands the line on and is filled from elsewhere, and so is its shadow.
    #[inline(always)]
    pub(super) fn shadow_request(&mut self, line: u32) -> (bool, History) {
        if self.exclusive {
            let history = self.history(line);
            self.shadow_remove(line);
            return (self.shadow.holds(history.time()), history);
        }
        self.shadow_touch(line)
    }

    /// Counts a line's first request in a set.
    #[inline(always)]
    pub fn count_new_line(&mut self, set: usize) {
        if self.reasons {
            self.sets[set].lines += 1;
        }
    }

    /// Counts a reference that missed here, in its set's row too, and blames the line's evictor.
    #[inline(always)]
    pub fn count_miss(&mut self, set: usize, missed: Missed, kind: Kind, insn: u32) {
        let Missed { class, history } = missed;
        self.misses.count(kind, class);
        if !self.reasons {
            return;
        }
        let counts = &mut self.sets[set];
        counts.misses += 1;
        counts.conflicts += u64::from(class == MissClass::Conflict);
        match history.standing() {
            Standing::EvictedBy if self.flags[history.value() as usize] & REUSED == 0 => {
                self.frames[history.value() as usize].blamed = insn;
            }
            Standing::Polluted => self.blames.add(history.value(), insn),
            _ => {}
        }
    }

    /// A line that had these flags left `frame`, which was `gone`: its fate is decided.
    #[inline(always)]
    pub(super) fn leave(&mut self, frame: usize, gone: Frame, flags: u8) -> Removed {
        let Frame { address, page, insn, displaced, blamed, .. } = gone;
        let reused = flags & REUSED != 0;
        if !reused && blamed != NONE {
            self.blames.add(insn, blamed);
        }
        if displaced != NONE {
            let history = &mut self.history[displaced as usize];
            if history.is(Standing::EvictedBy, frame as u32) {
                let (standing, value) = if reused { (Standing::Evicted, 0) } else { (Standing::Polluted, insn) };
                history.stands(standing, value);
            }
        }
        Removed { address, page, insn, dirty: flags & DIRTY != 0 }
    }
}
