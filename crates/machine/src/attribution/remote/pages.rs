//! The pages of the command, by the frames that they lie in.
//!
//! A frame serves another page later, and a page moves to another frame: the kernel joins small pages to large ones
//! (`khugepaged`), balances nodes, or moves pages on request. A page that moved keeps its first toucher.

use super::page::Page;
use rustc_hash::FxHashMap;

const PAGE_BYTES: u64 = 4096;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Pages by physical page.
    frames: FxHashMap<u64, Page>,
    /// Pages with frames that have been reused since.
    gone: Vec<Page>,
    /// Frames by process and virtual address, until something else is mapped there.
    lies_in: FxHashMap<(u32, u64), u64>,
    /// Mappings by process and end, and by process and start: their other side.
    starts: FxHashMap<(u32, u64), u64>,
    ends: FxHashMap<(u32, u64), u64>,
}

impl Pages {
    /// The page of a process at this address, which lies in this frame; `by`: the task and the node that touch it now.
    pub fn page(&mut self, frame: u64, pid: u32, vaddr: u64, by: (u32, u8)) -> &mut Page {
        let known = self.frames.get(&frame);
        // Another process that shares the frame sees it at an address of its own.
        if known.is_none_or(|page| page.pid == pid && page.vaddr != vaddr) {
            let new = self.moved(frame, pid, vaddr).unwrap_or_else(|| Page::new(vaddr, pid, by));
            let frame_had = self.frames.insert(frame, new);
            self.gone.extend(frame_had.filter(|page| page.remote > 0));
            self.lies_in.insert((pid, vaddr), frame);
        }
        self.frames.entry(frame).or_insert_with(|| Page::new(vaddr, pid, by))
    }

    /// The page that lay in another frame so far.
    fn moved(&mut self, frame: u64, pid: u32, vaddr: u64) -> Option<Page> {
        let before = self.lies_in.get(&(pid, vaddr)).copied().filter(|before| *before != frame)?;
        let is_it = self.frames.get(&before).is_some_and(|page| (page.pid, page.vaddr) == (pid, vaddr));
        if is_it { self.frames.remove(&before) } else { None }
    }

    /// Notes a mapping: all pages in it from now on are new. The kernel joins anonymous neighbours and reports the
    /// whole, of which only the added part is new.
    pub fn map(&mut self, pid: u32, start: u64, end: u64) {
        let below = self.starts.insert((pid, end), start).filter(|known| start < *known);
        let above = self.ends.insert((pid, start), end).filter(|known| *known < end);
        self.forget(pid, above.unwrap_or(start), below.unwrap_or(end));
    }

    fn forget(&mut self, pid: u32, start: u64, end: u64) {
        if (end.saturating_sub(start) / PAGE_BYTES) as usize > self.lies_in.len() {
            self.lies_in.retain(|(of, vaddr), _| *of != pid || !(start..end).contains(vaddr));
            return;
        }
        for vaddr in (start..end).step_by(PAGE_BYTES as usize) {
            self.lies_in.remove(&(pid, vaddr));
        }
    }

    /// Returns all pages that were read from another node, with their frames; those with reused frames have none.
    pub fn remote(&mut self) -> Vec<(Option<u64>, Page)> {
        let frames = self.frames.drain().filter(|(_, page)| page.remote > 0).map(|(frame, page)| (Some(frame), page));
        let mut pages: Vec<_> = frames.chain(self.gone.drain(..).map(|page| (None, page))).collect();
        pages.sort_by_key(|(_, page)| (page.pid, page.vaddr));
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0x7000_0000;

    #[test]
    fn a_page_that_moves_to_another_frame_keeps_its_first_touch() {
        let mut pages = Pages::default();
        pages.page(5, 1, ADDRESS, (10, 0)).remote = 7;
        let page = pages.page(600, 1, ADDRESS, (11, 1));
        assert_eq!((page.first, page.remote), ((10, 0), 7));
        // Its old frame serves another page.
        assert_eq!(pages.page(5, 1, ADDRESS + 4096, (12, 1)).first, (12, 1));
        assert_eq!(pages.remote().len(), 1);
    }

    #[test]
    fn memory_mapped_anew_is_touched_first_by_the_next_user() {
        for end in [ADDRESS + 4096, ADDRESS + (1 << 30)] {
            let mut pages = Pages::default();
            pages.page(5, 1, ADDRESS, (10, 0)).remote = 7;
            pages.page(5, 1, ADDRESS, (11, 1));
            pages.map(2, ADDRESS, end);
            pages.map(1, ADDRESS, end);
            assert_eq!(pages.page(6, 1, ADDRESS, (11, 1)).first, (11, 1));
            // Another page takes the frame: both are reported.
            pages.page(6, 1, ADDRESS + 8192, (12, 1)).remote = 1;
            let remote: Vec<(Option<u64>, u64)> =
                pages.remote().iter().map(|(frame, page)| (*frame, page.vaddr)).collect();
            assert_eq!(remote, [(Some(5), ADDRESS), (Some(6), ADDRESS + 8192)]);
        }
    }

    #[test]
    fn a_mapping_that_grows_keeps_what_it_had() {
        let mut pages = Pages::default();
        pages.map(1, ADDRESS, ADDRESS + 8192);
        pages.page(5, 1, ADDRESS, (10, 0));
        pages.map(1, ADDRESS - 4096, ADDRESS + 8192);
        pages.map(1, ADDRESS - 4096, ADDRESS + 16384);
        assert_eq!(pages.page(6, 1, ADDRESS, (11, 1)).first, (10, 0));
        // The same place once more is a new mapping.
        pages.map(1, ADDRESS - 4096, ADDRESS + 16384);
        assert_eq!(pages.page(7, 1, ADDRESS, (12, 1)).first, (12, 1));
    }

    #[test]
    fn a_frame_that_processes_share_is_one_page() {
        let mut pages = Pages::default();
        pages.page(5, 1, ADDRESS, (10, 0));
        assert_eq!(pages.page(5, 2, ADDRESS + 4096, (20, 1)).first, (10, 0));
    }
}
