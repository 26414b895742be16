//! Answers by instruction, found anew ever more rarely.

use nearmiss_record::units::InsnId;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Growth factor of the distance between recomputations of one answer.
const RARER: u32 = 4;
/// Ids beyond this are unused: a trace numbers its instructions from 0 on.
const MOST_IDS: usize = 1 << 28;

#[derive(Clone, Debug)]
struct Kept<T> {
    answer: Option<T>,
    /// Questions until the answer is looked at again.
    wait: u32,
    /// The number of the question at which `wait` ends.
    due: u32,
    /// Blocks known at the answer.
    blocks: u64,
}

/// Answers by id and by the number of blocks known when they were found, for all maps built from the same blocks.
#[derive(Debug)]
pub(crate) struct Shared<T>(Mutex<FxHashMap<(InsnId, u64), Option<T>>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared(Mutex::default())
    }
}

impl<T: Clone> Shared<T> {
    /// Returns the first answer found. Two threads that compute one answer at once find the same value twice.
    fn get(&self, insn: InsnId, blocks: u64, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = known().get(&(insn, blocks)) {
            return answer.clone();
        }
        let answer = find();
        known().insert((insn, blocks), answer.clone());
        answer
    }
}

/// Kept answers to one question, by id.
#[derive(Clone, Debug)]
pub(crate) struct Answers<T> {
    kept: Vec<Kept<T>>,
    first: u32,
    /// Store of answers shared with other maps.
    pub(crate) shared: Option<Arc<Shared<T>>>,
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Answers { kept: Vec::new(), first: 1, shared: None }
    }
}

impl<T: Clone> Answers<T> {
    /// Answers from a question of this number on.
    pub(crate) fn from_question(first: u32) -> Self {
        Answers { kept: Vec::new(), first: first.max(1), shared: None }
    }

    /// The answer for `insn`, from `find` where one is due and blocks have come since the last.
    pub(crate) fn get(&mut self, insn: InsnId, blocks: u64, find: impl FnOnce() -> Option<T>) -> Option<&T> {
        let index = insn.0 as usize;
        if index >= self.kept.len() {
            if index >= MOST_IDS {
                return None;
            }
            self.kept.resize(index + 1, Kept { answer: None, wait: self.first, due: self.first, blocks: 0 });
        }
        let kept = &mut self.kept[index];
        kept.wait -= 1;
        if kept.wait == 0 {
            match &self.shared {
                Some(shared) => kept.renew(blocks, || shared.get(insn, blocks, find)),
                None => kept.renew(blocks, find),
            }
        }
        kept.answer.as_ref()
    }
}

impl<T> Kept<T> {
    #[cold]
    #[inline(never)]
    fn renew(&mut self, blocks: u64, find: impl FnOnce() -> Option<T>) {
        if self.answer.is_none() || self.blocks != blocks {
            self.answer = find();
            self.blocks = blocks;
        }
        // An instruction without code yet gets no longer interval: it is looked up again at once.
        let due = if self.answer.is_some() { self.due.saturating_mul(RARER) } else { self.due };
        self.wait = (due - self.due).max(1);
        self.due = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_anew_ever_more_rarely_and_only_for_new_code() {
        let mut answers = Answers::default();
        let mut found = Vec::new();
        for question in 1..=70_u64 {
            answers.get(InsnId(3), question, || {
                found.push(question);
                Some(question)
            });
        }
        assert_eq!(found, [1, 4, 16, 64]);
        for _ in 70..300 {
            assert_eq!(answers.get(InsnId(3), 64, || Some(0)), Some(&64));
        }
    }

    #[test]
    fn an_answer_is_shared_by_maps_with_the_same_blocks() {
        let shared = Arc::new(Shared::default());
        let new = || Answers { shared: Some(Arc::clone(&shared)), ..Answers::default() };
        assert_eq!(new().get(InsnId(3), 5, || Some(1)), Some(&1));
        assert_eq!(new().get(InsnId(3), 5, || Some(2)), Some(&1));
        assert_eq!(new().get(InsnId(3), 6, || Some(3)), Some(&3), "another block has come");
        assert_eq!(new().get(InsnId(4), 5, || None), None);
        assert_eq!(new().get(InsnId(4), 5, || Some(5)), None, "that nothing is known was found, too");
    }

    #[test]
    fn a_missing_answer_is_looked_up_again_at_once() {
        let mut answers = Answers::default();
        assert_eq!(answers.get(InsnId(0), 1, || None::<u32>), None);
        assert_eq!(answers.get(InsnId(0), 1, || Some(7)), Some(&7));
        assert_eq!(answers.get(InsnId(u32::MAX), 1, || Some(7)), None);
    }
}
