//! Keys forgotten and when, so that a response requested before that is not stored after it.

use super::key::Key;
use std::hash::{BuildHasher, RandomState};

/// Keys that share a place are forgotten together: one of them is fetched once more than it had to be.
const PLACES: usize = 4096;

/// The turns at which keys were last forgotten.
#[derive(Debug)]
pub struct Forgotten {
    turn: u64,
    last: Box<[u64]>,
    hashes: RandomState,
}

impl Default for Forgotten {
    fn default() -> Self {
        Forgotten { turn: 0, last: vec![0; PLACES].into_boxed_slice(), hashes: RandomState::new() }
    }
}

impl Forgotten {
    /// Returns how often something was forgotten.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// Returns whether the key was forgotten after that turn.
    pub fn has(&self, key: &Key, since: u64) -> bool {
        self.last[self.place(key)] > since
    }

    /// The key is forgotten now.
    pub fn add(&mut self, key: &Key) {
        self.turn += 1;
        self.last[self.place(key)] = self.turn;
    }

    /// Every key is forgotten now.
    pub fn add_all(&mut self) {
        self.turn += 1;
        self.last.fill(self.turn);
    }

    fn place(&self, key: &Key) -> usize {
        self.hashes.hash_one(key) as usize % PLACES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_forgotten_for_those_who_began_before() {
        let (mut forgotten, key) = (Forgotten::default(), Key::new("a", "/"));
        let before = forgotten.turn();
        assert!(!forgotten.has(&key, before));
        forgotten.add(&key);
        assert!(forgotten.has(&key, before) && !forgotten.has(&key, forgotten.turn()));
        let between = forgotten.turn();
        forgotten.add_all();
        assert!(forgotten.has(&key, between) && !forgotten.has(&key, forgotten.turn()));
    }
}
