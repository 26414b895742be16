//! Independent simulations on the threads that there are; results in the order of the questions.

use crate::PaperError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers all questions; `done` is called each time one more is answered.
pub fn answer<Q: Sync, A: Send>(
    questions: &[Q],
    done: &(dyn Fn() + Sync),
    each: impl Fn(&Q) -> Result<A, PaperError> + Sync,
) -> Result<Vec<A>, PaperError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(questions.len().max(1));
    let next = AtomicUsize::new(0);
    let answers: Vec<Mutex<Option<Result<A, PaperError>>>> = questions.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((question, slot)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    questions.get(at).zip(answers.get(at))
                } {
                    let answer = each(question);
                    *slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(answer);
                    done();
                }
            });
        }
    });
    let taken = answers.into_iter().map(|slot| slot.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()));
    taken.map(|answer| answer.unwrap_or(Err(PaperError::Stuck))).collect()
}
