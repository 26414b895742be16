//! Answers by instruction, found anew ever more rarely.

use nearmiss_record::units::InsnId;

/// How much later the next answer is due than the last.
const RARER: u32 = 4;
/// Ids beyond this are nobody's: a trace numbers its instructions from 0 on.
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

/// Kept answers to one question, by id.
#[derive(Clone, Debug)]
pub(crate) struct Answers<T> {
    kept: Vec<Kept<T>>,
    first: u32,
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Answers { kept: Vec::new(), first: 1 }
    }
}

impl<T: Clone> Answers<T> {
    /// Answers from a question of this number on.
    pub(crate) fn from_question(first: u32) -> Self {
        Answers { kept: Vec::new(), first: first.max(1) }
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
            kept.renew(blocks, find);
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
        // Asked before its code has come, an instruction is asked about again at once.
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
    fn what_has_no_answer_is_asked_again_at_once() {
        let mut answers = Answers::default();
        assert_eq!(answers.get(InsnId(0), 1, || None::<u32>), None);
        assert_eq!(answers.get(InsnId(0), 1, || Some(7)), Some(&7));
        assert_eq!(answers.get(InsnId(u32::MAX), 1, || Some(7)), None);
    }
}
