//! User call stacks from copied stack bytes, by the unwind tables of the files: most of Debian has no frame pointers.

use super::AddressSpaces;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use memmap2::Mmap;
use object::{Object, ObjectSection, ObjectSegment};
use std::collections::HashMap;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// Deepest stack kept.
const DEPTH: usize = 128;

/// Part of a mapped file.
#[derive(Clone)]
struct Section {
    file: Arc<Mmap>,
    range: Range<usize>,
}

impl Deref for Section {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.file.get(self.range.clone()).unwrap_or(&[])
    }
}

/// Tables of a file for unwinding its code.
struct Tables {
    eh_frame: Option<(Range<u64>, Section)>,
    eh_frame_hdr: Option<(Range<u64>, Section)>,
    text: Option<(Range<u64>, Section)>,
    /// Place in the file, and address, of every segment.
    segments: Vec<(Range<u64>, u64)>,
}

struct ForProcess {
    version: u64,
    unwinder: UnwinderX86_64<Section>,
}

/// Unwinds the user stacks of any number of processes.
#[derive(Default)]
pub struct Unwinder {
    files: HashMap<Arc<Path>, Option<Arc<Tables>>>,
    processes: HashMap<i32, ForProcess>,
    cache: CacheX86_64,
}

impl Unwinder {
    /// Addresses from the innermost on: the instruction, then, of each caller, an address within its call instruction.
    /// `stack` is what lay at `sp`. Stops where tables or bytes end.
    pub fn unwind(&mut self, spaces: &AddressSpaces, pid: i32, [ip, sp, bp]: [u64; 3], stack: &[u8]) -> Vec<u64> {
        let version = spaces.version(pid);
        if self.processes.get(&pid).is_none_or(|p| p.version != version) {
            let unwinder = self.load(spaces, pid);
            self.processes.insert(pid, ForProcess { version, unwinder });
        }
        let Some(process) = self.processes.get(&pid) else { return vec![ip] };
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(drop)?;
            let word = stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            word.try_into().map(u64::from_le_bytes).map_err(drop)
        };
        let registers = UnwindRegsX86_64::new(ip, sp, bp);
        let mut frames = process.unwinder.iter_frames(ip, registers, &mut self.cache, &mut read);
        let mut out = Vec::with_capacity(16);
        while let Ok(Some(frame)) = frames.next() {
            out.push(match frame {
                FrameAddress::InstructionPointer(address) => address,
                FrameAddress::ReturnAddress(address) => address.get().saturating_sub(1),
            });
            if out.len() == DEPTH {
                break;
            }
        }
        out
    }

    fn load(&mut self, spaces: &AddressSpaces, pid: i32) -> UnwinderX86_64<Section> {
        let mut unwinder = UnwinderX86_64::new();
        for (start, mapping) in spaces.of(pid).into_iter().flatten() {
            let tables =
                self.files.entry(mapping.path.clone()).or_insert_with(|| tables(&mapping.path).map(Arc::new)).clone();
            let Some(tables) = tables else { continue };
            let segment = tables.segments.iter().find(|(file, _)| file.contains(&mapping.file_offset));
            let Some((file, address)) = segment else { continue };
            let base = start.wrapping_sub(address + (mapping.file_offset - file.start));
            let part =
                |p: &Option<(Range<u64>, Section)>| (p.as_ref().map(|p| p.0.clone()), p.as_ref().map(|p| p.1.clone()));
            let (eh_frame_svma, eh_frame) = part(&tables.eh_frame);
            let (eh_frame_hdr_svma, eh_frame_hdr) = part(&tables.eh_frame_hdr);
            let (text_svma, text) = part(&tables.text);
            unwinder.add_module(Module::new(
                mapping.path.to_string_lossy().into_owned(),
                *start..mapping.end,
                base,
                ExplicitModuleSectionInfo {
                    base_svma: 0,
                    text_svma,
                    text,
                    eh_frame_svma,
                    eh_frame,
                    eh_frame_hdr_svma,
                    eh_frame_hdr,
                    stubs_svma: None,
                    stub_helper_svma: None,
                    got_svma: None,
                    unwind_info: None,
                    debug_frame: None,
                    text_segment_svma: None,
                    text_segment: None,
                },
            ));
        }
        unwinder
    }
}

fn tables(path: &Path) -> Option<Tables> {
    let file = File::open(path).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?;
    // SAFETY: a private read-only mapping; a file cut short while it is mapped is as fatal to us as it is to the
    // program that executes it.
    let bytes = Arc::new(unsafe { Mmap::map(&file) }.ok()?);
    let object = object::File::parse(&bytes[..]).ok()?;
    let section = |name: &str| {
        let section = object.section_by_name(name)?;
        let (offset, size) = section.file_range()?;
        let range = usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(size)?).ok()?;
        let address = section.address();
        Some((address..address.checked_add(section.size())?, Section { file: bytes.clone(), range }))
    };
    Some(Tables {
        eh_frame: section(".eh_frame"),
        eh_frame_hdr: section(".eh_frame_hdr"),
        text: section(".text"),
        segments: object
            .segments()
            .map(|s| {
                let (offset, size) = s.file_range();
                (offset..offset.saturating_add(size), s.address())
            })
            .collect(),
    })
}
