//! Several recordings of one command as one side.

use crate::Sample;
use nearmiss_record::baseline::{BaselinePart, Counts, Side};
use nearmiss_record::gate::PartKind;
use nearmiss_record::model::ByClass;
use std::collections::BTreeMap;

/// A part is kept in a baseline if it has so much of any sum: one in so many.
const LEAST_KEPT: u64 = 1000;

type Key = (PartKind, String, String, bool);

/// The recordings of a command as one side; parts are means.
pub fn side(command: &str, samples: &[Sample]) -> Side {
    let mut figures: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (at, sample) in samples.iter().enumerate() {
        for (name, count) in &sample.figures {
            figures.entry(name.clone()).or_insert_with(|| vec![0; samples.len()])[at] = *count;
        }
    }
    let mut sums: BTreeMap<Key, BaselinePart> = BTreeMap::new();
    for part in samples.iter().flat_map(|sample| &sample.parts) {
        let key = (part.kind, part.name.clone(), part.module.clone(), part.kernel);
        match sums.get_mut(&key) {
            Some(sum) => add(sum, part),
            None => drop(sums.insert(key, part.clone())),
        }
    }
    let count = samples.len().max(1) as u64;
    let parts = sums.into_values().map(|sum| mean(sum, count)).collect();
    Side { command: command.to_owned(), figures, parts, least_kept: 0 }
}

fn add(sum: &mut BaselinePart, part: &BaselinePart) {
    sum.calls += part.calls;
    let (into, from) = (&mut sum.counts, &part.counts);
    into.instructions += from.instructions;
    into.loads += from.loads;
    into.stores += from.stores;
    into.cycles += from.cycles;
    into.misses.resize(into.misses.len().max(from.misses.len()), ByClass::default());
    for (into, from) in into.misses.iter_mut().zip(&from.misses) {
        into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
    }
}

fn mean(sum: BaselinePart, count: u64) -> BaselinePart {
    let mean = |sum: u64| (sum + count / 2) / count;
    let counts = Counts {
        instructions: mean(sum.counts.instructions),
        loads: mean(sum.counts.loads),
        stores: mean(sum.counts.stores),
        misses: sum.counts.misses.iter().map(|classes| classes.map(mean)).collect(),
        cycles: mean(sum.counts.cycles),
    };
    BaselinePart { calls: mean(sum.calls), counts, ..sum }
}

/// A side as a repository keeps it: without the parts that have little of everything.
pub fn to_keep(side: &Side) -> Side {
    let all = side.parts.iter().filter(|part| part.kind == PartKind::Function);
    let mut whole = [0u64; WEIGHED];
    all.for_each(|part| whole.iter_mut().zip(weights(part)).for_each(|(sum, weight)| *sum += weight));
    let matters = |part: &&BaselinePart| {
        weights(part).iter().zip(whole).any(|(weight, whole)| *weight > 0 && weight * LEAST_KEPT >= whole)
    };
    let parts = side.parts.iter().filter(matters).cloned().collect();
    Side { parts, least_kept: LEAST_KEPT, ..side.clone() }
}

const WEIGHED: usize = 5;

fn weights(part: &BaselinePart) -> [u64; WEIGHED] {
    let counts = &part.counts;
    let misses = |level: Option<&ByClass>| level.map_or(0, |classes| classes.iter().sum());
    [
        counts.instructions,
        counts.loads + counts.stores,
        misses(counts.misses.first()),
        misses(counts.misses.get(1)),
        misses(counts.misses.last()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, instructions: u64) -> BaselinePart {
        let counts = Counts { instructions, misses: vec![[instructions, 0, 0, 0, 0, 1]], ..Counts::default() };
        BaselinePart {
            kind: PartKind::Function,
            name: name.to_owned(),
            module: String::new(),
            kernel: false,
            file: String::new(),
            line: 0,
            caller: String::new(),
            calls: 3,
            counts,
        }
    }

    fn sample(figures: &[(&str, u64)], parts: Vec<BaselinePart>) -> Sample {
        Sample {
            figures: figures.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            parts,
            threads: 1,
        }
    }

    #[test]
    fn figures_are_kept_by_recording_and_parts_as_means() {
        let samples = [
            sample(&[("a", 5)], vec![part("f", 10)]),
            sample(&[("a", 7), ("b", 2)], vec![part("f", 13), part("g", 4)]),
        ];
        let side = side("x", &samples);
        assert_eq!((side.figures["a"].as_slice(), side.figures["b"].as_slice()), (&[5, 7][..], &[0, 2][..]));
        let seen: Vec<_> = side.parts.iter().map(|it| (it.name.as_str(), it.calls, it.counts.instructions)).collect();
        assert_eq!(seen, [("f", 3, 12), ("g", 2, 2)]);
        assert_eq!(side.parts[0].counts.misses, [[12, 0, 0, 0, 0, 1]]);
        assert_eq!(side.recordings(), 2);
    }

    #[test]
    fn a_baseline_leaves_out_what_counts_little() {
        let mut little = part("little", 1);
        little.counts.misses.clear();
        let side = Side { parts: vec![part("much", 10_000), little], ..Side::default() };
        let names: Vec<_> = to_keep(&side).parts.into_iter().map(|part| part.name).collect();
        assert_eq!(names, ["much"]);
    }
}
