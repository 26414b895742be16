//! Puts functions that the guest's CPU can run in the place of those that a process chose for AVX-512.
//!
//! The same library, started here with AVX-512 switched off by a tunable of glibc, chooses others: functions of AVX2, with
//! the same names and the same contracts. Their addresses take the place of the first ones wherever these are kept in the
//! images: in tables of addresses, on the heap, on stacks. A thread that is inside such a function cannot be changed over.

use crate::functions::Chosen;
use crate::wire::{Value, fields, messages};
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
/// Bytes of a function at most: glibc's largest has 2 KiB.
const LONGEST: u64 = 4 << 10;
const PAGE: usize = 4096;
/// Bytes that are looked at together.
const CHUNK: usize = 256 * PAGE;
/// Two magic numbers.
const HEAD: usize = 8;
/// `CoreEntry.thread_info`, `ThreadInfoX86.gpregs`, `UserX86RegsEntry.ip`.
const REGISTERS: [u64; 2] = [2, 2];
const IP: u64 = 17;

/// Addresses, each with the one that takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replacements(BTreeMap<u64, u64>);

impl Replacements {
    /// Returns the replacements of several processes. Errors: a library with unknown functions for AVX2.
    pub(crate) fn of(chosen: &[Chosen]) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        let mut known: Vec<Chosen> = Vec::new();
        for chosen in chosen.iter().filter(|chosen| !chosen.wide.is_empty()) {
            if !known.iter().any(|narrow| narrow.library == chosen.library) {
                known.extend(
                    without_avx512().filter(|narrow| narrow.library == chosen.library && narrow.wide.is_empty()),
                );
            }
            let narrow = known.iter().find(|narrow| narrow.library == chosen.library);
            let narrow = narrow.ok_or_else(|| refusal(chosen))?;
            all.extend(pairs(chosen, narrow));
            if let Some(_left) = chosen.wide.iter().find(|wide| !all.contains_key(wide)) {
                return Err(refusal(chosen));
            }
        }
        Ok(Replacements(all))
    }

    /// How many functions.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether a thread of a snapshot stands inside one of them.
    pub(crate) fn is_inside_one(&self, images: &Path) -> io::Result<bool> {
        let inside = |ip: u64| self.0.range(..=ip).next_back().is_some_and(|(start, _)| ip - start < LONGEST);
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
        let (Some((first, _)), Some((last, _))) = (self.0.first_key_value(), self.0.last_key_value()) else {
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
                        && let Some(narrow) = self.0.get(&value)
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
        Replacements([(0x1000, 0x5000), (0x2000, 0x6000)].into()).put_into(place.path()).unwrap();
        let changed = fs::read(place.path().join("pages-1.img")).unwrap();
        assert_eq!(changed[..32], words(&[1, 0x5000, 0x1008, 0x6000]));
        assert_eq!(changed[CHUNK..], words(&[0x6000]));
        assert_eq!(changed.len(), pages.len());
    }

    #[test]
    fn a_thread_inside_a_wide_function_is_seen() {
        let core = |ip: u8| {
            let (mut info, mut core, mut image) = (Vec::new(), Vec::new(), vec![0; HEAD]);
            put_bytes(&mut info, 2, &[0x88, 0x01, 0x80 | ip & 0x7f, 0x20]);
            put_bytes(&mut core, 2, &info);
            image.extend((core.len() as u32).to_le_bytes());
            image.extend(core);
            image
        };
        let place = tempfile::tempdir().unwrap();
        let replacements = Replacements([(0x1010, 0x5000)].into());
        let inside = |ip| {
            fs::write(place.path().join("core-7.img"), core(ip)).unwrap();
            replacements.is_inside_one(place.path()).unwrap()
        };
        assert!(!inside(0x0f) && inside(0x10) && inside(0x7f));
    }
}
