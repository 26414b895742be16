//! Loads that wait for a store which only looks like theirs.
//!
//! A core compares a load with the stores before it by the offset within the page. A load with the offset of a store
//! still on its way to the cache, but to another page, waits as if both were to the same bytes ("4K aliasing": Intel 64
//! and IA-32 Architectures Optimization Reference Manual, on memory disambiguation and aliasing).

use nearmiss_record::machine::StoreAliasing;
use nearmiss_record::reference::Record;

const PAGE_BYTES: u64 = 4096;
/// Stores are looked up by pieces of the page.
const PIECE_LOG2: u32 = 3;
const PIECES: usize = (PAGE_BYTES >> PIECE_LOG2) as usize;

/// The latest store to a piece of any page.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Number of the store, from 1; 0: there was none.
    number: u64,
    vaddr: u64,
    record: Record,
}

/// The stores of one hardware thread that a load may have to wait for.
#[derive(Clone, Debug)]
pub struct StoreBuffer {
    stores: u64,
    stores_seen: u64,
    pieces: Box<[Held; PIECES]>,
}

impl StoreBuffer {
    /// Empty.
    pub fn new(aliasing: StoreAliasing) -> Self {
        StoreBuffer { stores: aliasing.stores.into(), stores_seen: 0, pieces: Box::new([Held::default(); PIECES]) }
    }

    /// A store to `vaddr`, which a policy may have moved from where `record` has it.
    pub fn store(&mut self, vaddr: u64, record: Record) {
        self.stores_seen += 1;
        for piece in pieces(vaddr, record.size().into()) {
            self.pieces[piece] = Held { number: self.stores_seen, vaddr, record };
        }
    }

    /// Returns the store that a load from `vaddr` waits for, though the store is to another page.
    pub fn waited_for(&self, vaddr: u64, bytes: u64) -> Option<Record> {
        let offset = vaddr % PAGE_BYTES;
        let looks_alike = |held: &&Held| {
            let theirs = held.vaddr % PAGE_BYTES;
            held.number > 0
                && self.stores_seen - held.number < self.stores
                && held.vaddr / PAGE_BYTES != vaddr / PAGE_BYTES
                && theirs < offset + bytes
                && offset < theirs + u64::from(held.record.size())
        };
        pieces(vaddr, bytes).map(|piece| &self.pieces[piece]).find(looks_alike).map(|held| held.record)
    }
}

/// Returns the pieces that `bytes` bytes from `vaddr` on lie in; bytes beyond the page are of no interest.
fn pieces(vaddr: u64, bytes: u64) -> std::ops::RangeInclusive<usize> {
    let first = vaddr % PAGE_BYTES;
    let last = (first + bytes.max(1) - 1).min(PAGE_BYTES - 1);
    (first >> PIECE_LOG2) as usize..=(last >> PIECE_LOG2) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::reference::Kind;
    use nearmiss_record::units::InsnId;

    const BUFFER: StoreAliasing = StoreAliasing { stores: 4, wait_cycles: 1.0 };

    fn store(buffer: &mut StoreBuffer, vaddr: u64, bytes: u32) {
        buffer.store(vaddr, Record::reference(Kind::Store, vaddr, bytes, 0, InsnId(1), 0, 1));
    }

    #[test]
    fn a_load_waits_for_a_store_of_the_same_offset_in_another_page() {
        let mut buffer = StoreBuffer::new(BUFFER);
        store(&mut buffer, 0x1_0100, 8);
        assert_eq!(buffer.waited_for(0x5_0100, 8).map(Record::vaddr), Some(0x1_0100));
        assert!(buffer.waited_for(0x5_0104, 4).is_some(), "a part of it");
        assert!(buffer.waited_for(0x5_00f8, 32).is_some(), "and around it");
        assert!(buffer.waited_for(0x5_0108, 8).is_none(), "not what lies behind it");
        assert!(buffer.waited_for(0x5_00f8, 8).is_none(), "nor before it");
    }

    #[test]
    fn its_own_store_is_no_alias() {
        let mut buffer = StoreBuffer::new(BUFFER);
        store(&mut buffer, 0x1_0100, 8);
        assert!(buffer.waited_for(0x1_0100, 8).is_none());
    }

    #[test]
    fn as_many_stores_later_it_has_left() {
        let mut buffer = StoreBuffer::new(BUFFER);
        store(&mut buffer, 0x1_0100, 8);
        (1..4).for_each(|n| store(&mut buffer, 0x1_0200 + n * 8, 8));
        assert!(buffer.waited_for(0x5_0100, 8).is_some());
        store(&mut buffer, 0x1_0300, 8);
        assert!(buffer.waited_for(0x5_0100, 8).is_none());
    }
}
