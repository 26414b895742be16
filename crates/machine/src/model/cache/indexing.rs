//! Set of a line, with the work that is the same for all lines of a page done once a page.

use crate::model::fast::plan::{Config, PAGE_LOG2};
use nearmiss_record::machine::Index;

/// The index function of one cache, split in two: the part of the page ([`Indexing::base`]) and the part of its line.
#[derive(Clone, Debug)]
pub(crate) struct Indexing {
    config: Config,
    sets: u32,
    /// A hashed index is an XOR of the address's parts: that of each line of a page.
    hashed: Option<Box<[u32]>>,
}

impl Indexing {
    pub fn new(config: &Config) -> Self {
        let lines = 1u64 << (PAGE_LOG2 - config.line_log2);
        let hash_of = |line: u64| config.hashed(line << config.line_log2) as u32;
        let hashed = (config.index == Index::Hashed && config.sets > 1).then(|| (0..lines).map(hash_of).collect());
        Indexing { sets: config.sets as u32, hashed, config: config.clone() }
    }

    /// The part of the page at an indexing address.
    pub fn base(&self, page_address: u64) -> u32 {
        match self.hashed {
            Some(_) => self.config.hashed(page_address) as u32,
            None => self.config.set_of(page_address) as u32,
        }
    }

    /// The set of a whole address.
    pub fn set_of(&self, address: u64) -> usize {
        self.config.set_of(address) as usize
    }

    /// The set of a page's line, counted from 0, given the page's part.
    #[inline]
    pub fn set(&self, base: u32, line: u32) -> usize {
        let number = match &self.hashed {
            Some(of_line) => base ^ of_line[line as usize],
            None => base + line,
        };
        (if number < self.sets { number } else { number % self.sets }) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::PRESETS;
    use crate::model::fast::plan::Plan;
    use crate::model::options::ModelOptions;

    #[test]
    fn both_parts_give_the_set_of_the_whole() {
        for preset in PRESETS {
            let machine = preset.machine().unwrap();
            let plan = Plan::new(&machine, &ModelOptions::of_one_cpu()).unwrap();
            for config in &plan.configs {
                let indexing = Indexing::new(config);
                for page in (0..4000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20 << PAGE_LOG2) {
                    let base = indexing.base(page);
                    for line in 0..1u32 << (PAGE_LOG2 - config.line_log2) {
                        let address = page | u64::from(line) << config.line_log2;
                        let name = (&machine.name, &config.name);
                        assert_eq!(indexing.set(base, line), indexing.set_of(address), "{name:?} {address:#x}");
                    }
                }
            }
        }
    }
}
