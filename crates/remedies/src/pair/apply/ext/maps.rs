//! The maps that the scheduler and its loader share, as `native/bpf/pair.h` lays them out.

use super::calls::{self, MapKind};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Tasks with a seat: the bits of a word.
pub const SEATS: usize = 64;
/// CPUs beside one that are looked at.
const NEIGHBOURS: usize = 15;
const NOBODY: u32 = u32::MAX;
/// Numbers of CPUs.
const CPUS: u32 = 1024;
/// Tasks that have a seat, and those that have ended and were not noticed yet.
const MOST_SEATED: u32 = 1024;

/// Counts of the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub dispatched: u64,
    pub by_table: u64,
}

/// The maps.
#[derive(Debug)]
pub struct Maps {
    maps: Vec<(&'static str, OwnedFd)>,
}

/// Name, kind, and bytes of a key and of a value, and entries.
const ALL: [(&str, MapKind, u32, u32, u32); 6] = [
    ("seats", MapKind::Hash, 4, 4, MOST_SEATED),
    ("table", MapKind::Array, 4, 16, SEATS as u32),
    ("state", MapKind::Array, 4, STATE, 1),
    ("neighbours", MapKind::Array, 4, 4 * (NEIGHBOURS as u32 + 1), CPUS),
    ("cpus", MapKind::Array, 4, 24, CPUS),
    ("together", MapKind::Array, 4, 8, (SEATS * SEATS) as u32),
];
const STATE: u32 = 40;

impl Maps {
    /// Empty ones: nobody has a seat, and nothing is known.
    pub fn new() -> io::Result<Self> {
        let made = |(name, kind, key, value, entries)| Ok((name, calls::map(kind, name, key, value, entries)?));
        let maps = Maps { maps: ALL.into_iter().map(made).collect::<io::Result<_>>()? };
        // Nothing runs anywhere, and all have their turns before them.
        let nobody = [[0; 16], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        (0..CPUS).try_for_each(|cpu| calls::update(maps.of("cpus")?, cpu, &nobody[..24]))?;
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        calls::update(maps.of("state")?, 0, &words(&[0, u64::MAX, u64::MAX, 0, 0]))?;
        let alone = [0xff; 4 * (NEIGHBOURS + 1)];
        (0..CPUS).try_for_each(|cpu| calls::update(maps.of("neighbours")?, cpu, &alone))?;
        Ok(maps)
    }

    fn of(&self, name: &str) -> io::Result<&OwnedFd> {
        let found = self.maps.iter().find(|(known, _)| *known == name);
        found.map(|(_, map)| map).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// The descriptor of a map.
    pub fn descriptor(&self, name: &str) -> Option<i32> {
        self.of(name).ok().map(AsRawFd::as_raw_fd)
    }

    /// CPUs of one domain are beside each other, up to 15 of each.
    pub fn set_neighbours(&self, domain: &[usize]) -> io::Result<()> {
        for cpu in domain {
            let others = domain.iter().filter(|other| *other != cpu).take(NEIGHBOURS).map(|other| *other as u32);
            let list = others.chain(std::iter::repeat(NOBODY)).take(NEIGHBOURS + 1);
            let list: Vec<u8> = list.flat_map(u32::to_ne_bytes).collect();
            calls::update(self.of("neighbours")?, *cpu as u32, &list)?;
        }
        Ok(())
    }

    /// Sets the row of a seat's task.
    pub fn set_row(&self, seat: usize, high: u64, low: u64) -> io::Result<()> {
        calls::update(self.of("table")?, seat as u32, &[high.to_ne_bytes(), low.to_ne_bytes()].concat())
    }

    /// A task takes a seat.
    pub fn seat(&self, task: i32, seat: usize) -> io::Result<()> {
        calls::update(self.of("seats")?, task as u32, &(seat as u32).to_ne_bytes())
    }

    /// A task has ended.
    pub fn unseat(&self, task: i32) -> io::Result<()> {
        calls::delete(self.of("seats")?, task as u32)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> io::Result<Counts> {
        let state = calls::lookup(self.of("state")?, 0, STATE as usize)?;
        let word = |at: usize| state.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
        let word = |at| word(at).map_or(0, u64::from_ne_bytes);
        Ok(Counts { dispatched: word(3), by_table: word(4) })
    }

    /// Nanoseconds that two seats ran beside each other.
    pub fn together(&self, a: usize, b: usize) -> io::Result<u64> {
        let one_way = |a: usize, b: usize| {
            let bytes = calls::lookup(self.of("together")?, (a * SEATS + b) as u32, 8)?;
            Ok::<u64, io::Error>(bytes.try_into().map_or(0, u64::from_ne_bytes))
        };
        Ok(one_way(a, b)? + one_way(b, a)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The header's own sizes, as a C compiler sees them.
    #[test]
    fn sizes_are_those_of_the_header() {
        let place = tempfile::tempdir().unwrap();
        let native = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/bpf");
        let value = |name: &str| ALL.iter().find(|map| map.0 == name).unwrap().3;
        let source = format!(
            "#include \"pair.h\"\n_Static_assert(sizeof(struct pair_row) == {} && sizeof(struct pair_state) == {} && \
             sizeof(struct pair_neighbours) == {} && sizeof(struct pair_cpu) == {} && PAIR_SEATS == {SEATS} && \
             PAIR_NEIGHBOURS == {NEIGHBOURS} && PAIR_NOBODY == {NOBODY}u, \"\");\n_Static_assert(\
             __builtin_offsetof(struct pair_cpu, seat) == 16 && __builtin_offsetof(struct pair_state, dispatched) == 24, \
             \"\");",
            value("table"),
            value("state"),
            value("neighbours"),
            value("cpus")
        );
        let file = place.path().join("sizes.c");
        std::fs::write(&file, source).unwrap();
        let mut compiler = std::process::Command::new("cc");
        assert!(compiler.arg("-fsyntax-only").arg("-I").arg(native).arg(file).status().unwrap().success());
    }
}
