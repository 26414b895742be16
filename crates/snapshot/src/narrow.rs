//! Puts functions that the guest's CPU can run in the place of those that a process chose for AVX-512.
//!
//! The same library, started here with AVX-512 switched off by a tunable of glibc, chooses others: functions of AVX2, with
//! the same names and the same contracts. Their addresses take the place of the first ones wherever these are kept in the
//! images: in tables of addresses, on the heap, on stacks. A thread that is inside such a function cannot be changed over.

use crate::functions::{Chosen, has_evex};
use crate::wire::{Value, fields, messages};
use nearmiss_symbols::Elf;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Switches off what the guest's CPU lacks.
pub(crate) const TUNABLE: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-RTM";
/// Starts quickly, and then waits.
const HELPER: &str = "/bin/sleep";
const STARTS_WITHIN: Duration = Duration::from_secs(5);
const PAGE: usize = 4096;
/// Bytes that are looked at together.
const CHUNK: usize = 256 * PAGE;
/// Two magic numbers.
const HEAD: usize = 8;
/// `CoreEntry.thread_info`, `ThreadInfoX86.gpregs`, `UserX86RegsEntry.ip`.
const REGISTERS: [u64; 2] = [2, 2];
const IP: u64 = 17;

/// Functions for AVX-512, and those that take their place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replacements {
    /// Addresses, each with the one that takes its place.
    addresses: BTreeMap<u64, u64>,
    /// Libraries with such functions: the file, and the address at which it is mapped.
    libraries: Vec<(String, u64)>,
}

impl Replacements {
    /// Returns the replacements of several processes. Errors: a library with unknown functions for AVX2.
    pub(crate) fn of(chosen: &[Chosen]) -> Result<Self, String> {
        let mut all = Replacements::default();
        let mut known: Vec<Chosen> = Vec::new();
        for chosen in chosen.iter().filter(|chosen| !chosen.wide.is_empty()) {
            if !known.iter().any(|narrow| narrow.library == chosen.library) {
                known.extend(
                    without_avx512().filter(|narrow| narrow.library == chosen.library && narrow.wide.is_empty()),
                );
            }
            let narrow = known.iter().find(|narrow| narrow.library == chosen.library);
            let narrow = narrow.ok_or_else(|| refusal(chosen))?;
            all.addresses.extend(pairs(chosen, narrow));
            if chosen.wide.iter().any(|wide| !all.addresses.contains_key(wide)) {
                return Err(refusal(chosen));
            }
            all.libraries.push((chosen.library.clone(), chosen.base));
        }
        Ok(all)
    }

    /// How many functions.
    pub(crate) fn count(&self) -> usize {
        self.addresses.len()
    }

    /// Whether a thread of a snapshot stands inside a function of EVEX instructions.
    pub(crate) fn is_inside_one(&self, images: &Path) -> io::Result<bool> {
        let open = |(file, base): &(String, u64)| Some((Elf::open(Path::new(file))?, *base));
        let libraries: Vec<(Elf, u64)> = self.libraries.iter().filter_map(open).collect();
        let inside = |ip: u64| libraries.iter().any(|(elf, base)| ip >= *base && has_evex(elf, ip - base));
        let cores = listed(images, "core-")?;
        for core in cores {
            let image = fs::read(core)?;
            if messages(&image, HEAD).filter_map(instruction_pointer).any(inside) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Replaces the addresses in all pages of a snapshot.
    pub(crate) fn put_into(&self, images: &Path) -> io::Result<()> {
        let (Some((first, _)), Some((last, _))) = (self.addresses.first_key_value(), self.addresses.last_key_value())
        else {
            return Ok(());
        };
        for path in listed(images, "pages-")? {
            let file = File::options().read(true).write(true).open(path)?;
            let mut chunk = vec![0; CHUNK];
            let mut at = 0;
            loop {
                let length = file.read_at(&mut chunk, at)?;
                if length == 0 {
                    break;
                }
                for (word, offset) in chunk[..length].chunks_exact(8).zip((at..).step_by(8)) {
                    let value = word.try_into().map_or(0, u64::from_le_bytes);
                    if (*first..=*last).contains(&value)
                        && let Some(narrow) = self.addresses.get(&value)
                    {
                        file.write_all_at(&narrow.to_le_bytes(), offset)?;
                    }
                }
                at += length as u64;
            }
        }
        Ok(())
    }
}

fn refusal(chosen: &Chosen) -> String {
    format!(
        "runs {} functions of {} that were chosen for AVX-512, which the guest's CPU does not have: start it with \
         GLIBC_TUNABLES={TUNABLE}, which leaves AVX2",
        chosen.wide.len(),
        chosen.library
    )
}

/// Wide functions of one process with those of another one that took the same slots.
fn pairs(chosen: &Chosen, narrow: &Chosen) -> Vec<(u64, u64)> {
    let by_slot: BTreeMap<u64, u64> = narrow.functions.iter().copied().collect();
    let wide = chosen.functions.iter().filter(|(_, address)| chosen.wide.contains(address));
    let pair = |(slot, address): &(u64, u64)| {
        let other = by_slot.get(slot)?.wrapping_sub(narrow.base);
        Some((*address, chosen.base.wrapping_add(other)))
    };
    wide.filter_map(pair).collect()
}

/// The choice of this machine's own C library without AVX-512.
fn without_avx512() -> impl Iterator<Item = Chosen> {
    let helper = Command::new(HELPER).arg("60").env_clear().env("GLIBC_TUNABLES", TUNABLE).stdin(Stdio::null()).spawn();
    helper.ok().into_iter().filter_map(|mut helper| {
        let begun = Instant::now();
        let pid = helper.id() as i32;
        // In its sleep it has chosen all.
        let sleeps = || fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|call| call.starts_with("230 "));
        while !sleeps() && begun.elapsed() < STARTS_WITHIN {
            std::thread::sleep(Duration::from_millis(1));
        }
        let chosen = Chosen::by(pid);
        // It sleeps and holds nothing.
        let _ = helper.kill();
        let _ = helper.wait();
        chosen
    })
}

fn instruction_pointer(core: &[u8]) -> Option<u64> {
    let part = |message, number| {
        fields(message).find_map(|field| match field.value {
            Value::Bytes(bytes) if field.number == number => Some(bytes),
            _ => None,
        })
    };
    let registers = REGISTERS.iter().try_fold(core, |message, number| part(message, *number))?;
    fields(registers).find_map(|field| match field.value {
        Value::Number(ip) if field.number == IP => Some(ip),
        _ => None,
    })
}

fn listed(images: &Path, start: &str) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(images)?.collect::<io::Result<Vec<_>>>()?;
    let named = entries.into_iter().filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    Ok(named.map(|entry| entry.path()).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::put_bytes;

    fn chosen(base: u64, functions: &[(u64, u64)], wide: &[u64]) -> Chosen {
        Chosen { library: "/lib/libc.so.6".into(), base, functions: functions.to_vec(), wide: wide.to_vec() }
    }

    #[test]
    fn each_wide_function_has_the_narrow_one_of_its_slot() {
        let wide =
            chosen(0x1000_0000, &[(8, 0x1000_0100), (16, 0x1000_0200), (24, 0x1000_0300)], &[0x1000_0100, 0x1000_0300]);
        let narrow = chosen(0x7000_0000, &[(8, 0x7000_0400), (16, 0x7000_0200), (24, 0x7000_0500)], &[]);
        assert_eq!(pairs(&wide, &narrow), [(0x1000_0100, 0x1000_0400), (0x1000_0300, 0x1000_0500)]);
    }

    #[test]
    fn addresses_are_replaced_in_all_pages() {
        let place = tempfile::tempdir().unwrap();
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut pages = words(&[1, 0x1000, 0x1008, 0x2000]);
        pages.resize(CHUNK, 0);
        pages.extend(words(&[0x2000]));
        fs::write(place.path().join("pages-1.img"), &pages).unwrap();
        let addresses = [(0x1000, 0x5000), (0x2000, 0x6000)].into();
        Replacements { addresses, ..Replacements::default() }.put_into(place.path()).unwrap();
        let changed = fs::read(place.path().join("pages-1.img")).unwrap();
        assert_eq!(changed[..32], words(&[1, 0x5000, 0x1008, 0x6000]));
        assert_eq!(changed[CHUNK..], words(&[0x6000]));
        assert_eq!(changed.len(), pages.len());
    }

    /// Returns this machine's C library, and the linked addresses of its first function with EVEX instructions and of the
    /// first one without.
    fn own_library() -> (String, u64, u64) {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps.lines().find_map(|line| line.split(' ').next_back().filter(|path| path.ends_with("libc.so.6")));
        let elf = Elf::open(Path::new(path.unwrap())).unwrap();
        let starts = || (0..4 << 20).step_by(16).filter_map(|at| elf.extent(at)).map(|(start, _)| start);
        let first = |with: bool| starts().find(|start| has_evex(&elf, *start) == with).unwrap();
        (path.unwrap().into(), first(true), first(false))
    }

    #[test]
    fn a_thread_inside_a_function_of_evex_instructions_is_seen_from_its_first_byte_to_its_last() {
        const BASE: u64 = 0x7000_0000_0000;
        let core = |ip: u64| {
            let (mut info, mut core, mut image) = (Vec::new(), Vec::new(), vec![0; HEAD]);
            let digits = (0..9).map(|digit| (ip >> (7 * digit)) as u8 & 0x7f | 0x80);
            let registers: Vec<u8> = [0x88, 0x01].into_iter().chain(digits).chain([0]).collect();
            put_bytes(&mut info, 2, &registers);
            put_bytes(&mut core, 2, &info);
            image.extend((core.len() as u32).to_le_bytes());
            image.extend(core);
            image
        };
        let place = tempfile::tempdir().unwrap();
        let (library, wide, narrow) = own_library();
        let (start, bytes) = Elf::open(Path::new(&library)).unwrap().extent(wide).unwrap();
        let replacements = Replacements { libraries: vec![(library, BASE)], ..Replacements::default() };
        let inside = |linked| {
            fs::write(place.path().join("core-7.img"), core(BASE + linked)).unwrap();
            replacements.is_inside_one(place.path()).unwrap()
        };
        assert!(inside(start) && inside(start + bytes - 1) && !inside(narrow));
    }
}
