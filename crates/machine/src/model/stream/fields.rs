//! Fields that an address policy places anew, each in an array of the policy's.

use crate::model::options::ModelError;
use nearmiss_record::policy::{AddressPolicy, Elements, PlacedField, Rearranged};
use rustc_hash::FxHashSet;

/// First physical address of the new arrays: above all memory that a guest has, so that no placement moves them.
const NEW_ARRAYS: u64 = 1 << 46;
/// First virtual address of the new arrays: no program has memory there.
const NEW_ADDRESSES: u64 = 1 << 44;
const PAGE_LOG2: u32 = 12;
/// Most bytes of all new arrays: their pages are numbered by as many bits as [`frame`] mixes.
const MOST_BYTES: u64 = 1 << (FRAME_BITS + PAGE_LOG2);
const FRAME_BITS: u32 = 24;

/// Elements one after another.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: u64,
    to: u64,
    /// Number of the first element among all of its array.
    first: u64,
    array: usize,
}

/// One kind of elements.
#[derive(Clone, Debug)]
struct Array {
    bytes: u64,
    /// First byte behind [`NEW_ADDRESSES`], and bytes an element, of each new array.
    parts: Vec<(u64, u64)>,
    /// Ascending.
    fields: Vec<PlacedField>,
}

/// New place of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) struct Place {
    /// Physical address.
    pub address: u64,
    /// Virtual address.
    pub vaddr: u64,
    /// Bytes that lie one after another from this place on.
    pub bytes: u32,
}

/// A policy that places fields anew, prepared for one lookup a reference.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Fields {
    /// Ascending, disjoint.
    runs: Vec<Run>,
    arrays: Vec<Array>,
    /// Virtual pages of the runs.
    pages: FxHashSet<u64>,
}

impl Fields {
    /// Prepares the policy; any other policy moves nothing. Refuses, in one sentence, what makes no sense.
    pub fn new(policy: &AddressPolicy) -> Result<Self, ModelError> {
        let AddressPolicy::Fields { arrays } = policy else { return Ok(Fields::default()) };
        let (mut fields, mut next) = (Fields::default(), 0);
        for array in arrays {
            fields.add(array, &mut next).map_err(|why| ModelError::Refused(format!("fields: {why}")))?;
        }
        fields.runs.sort_unstable_by_key(|run| run.from);
        match fields.runs.windows(2).find(|pair| pair[1].from < pair[0].to) {
            Some(pair) => Err(ModelError::Refused(format!("fields: two elements lie at {:#x}", pair[1].from))),
            None => Ok(fields),
        }
    }

    fn add(&mut self, array: &Rearranged, next: &mut u64) -> Result<(), String> {
        let count = array.elements.iter().try_fold(0u64, |all, run| all.checked_add(run.count));
        let count = count.filter(|_| array.bytes > 0).ok_or("elements have bytes and a number")?;
        let mut parts = Vec::new();
        for &bytes in &array.parts {
            let begin = *next + array.begin % (1 << PAGE_LOG2);
            parts.push((begin, bytes));
            let end = count.checked_mul(bytes).and_then(|all| begin.checked_add(all)).filter(|end| *end < MOST_BYTES);
            *next = end.ok_or("the new arrays take more than 64 GiB")?.next_multiple_of(1 << PAGE_LOG2);
        }
        let mut fields = array.fields.clone();
        fields.sort_unstable_by_key(|field| field.from);
        check(&fields, array)?;
        self.runs_of(&array.elements, array.bytes)?;
        self.arrays.push(Array { bytes: array.bytes, parts, fields });
        Ok(())
    }

    fn runs_of(&mut self, elements: &[Elements], bytes: u64) -> Result<(), String> {
        let mut first = 0;
        for run in elements.iter().filter(|run| run.count > 0) {
            let to = run.count.checked_mul(bytes).and_then(|all| run.from.checked_add(all));
            let to = to.filter(|to| *to < 1 << 47).ok_or_else(|| format!("no element lies at {:#x}", run.from))?;
            self.runs.push(Run { from: run.from, to, first, array: self.arrays.len() });
            self.pages.extend(run.from >> PAGE_LOG2..=(to - 1) >> PAGE_LOG2);
            first += run.count;
        }
        Ok(())
    }

    /// Whether any bytes move.
    pub fn moves(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether bytes near these may move.
    #[inline]
    pub fn concerns(&self, vaddr: u64, size: u32) -> bool {
        self.moves()
            && size > 0
            && (self.pages.contains(&(vaddr >> PAGE_LOG2))
                || self.pages.contains(&((vaddr + u64::from(size) - 1) >> PAGE_LOG2)))
    }

    /// Returns the place of a byte, and how many of the `size` bytes from it on lie behind it.
    pub fn place(&self, address: u64, vaddr: u64, size: u32) -> Place {
        let until = |end: u64| u64::from(size).min(end - vaddr) as u32;
        let stays = |bytes| Place { address, vaddr, bytes };
        let next = self.runs.partition_point(|run| run.to <= vaddr);
        let Some(run) = self.runs.get(next) else { return stays(size) };
        if vaddr < run.from {
            return stays(until(run.from));
        }
        let array = &self.arrays[run.array];
        let (number, into) = ((vaddr - run.from) / array.bytes, (vaddr - run.from) % array.bytes);
        let element = vaddr - into;
        let at = array.fields.partition_point(|field| field.to <= into);
        let Some(field) = array.fields.get(at) else { return stays(until(element + array.bytes)) };
        if into < field.from {
            return stays(until(element + field.from));
        }
        let (begin, bytes) = array.parts[field.part as usize];
        let offset = begin + (run.first + number) * bytes + field.at + (into - field.from);
        // Bytes of two pages have no common place.
        let in_page = (1 << PAGE_LOG2) - (offset & ((1 << PAGE_LOG2) - 1));
        let bytes = until(element + field.to).min(in_page as u32);
        Place { address: NEW_ARRAYS + frame(offset), vaddr: NEW_ADDRESSES + offset, bytes }
    }
}

/// The physical place of a byte of the new arrays: page by page in no order, as a machine that has run for a while gives
/// pages out.
fn frame(offset: u64) -> u64 {
    const MASK: u64 = (1 << FRAME_BITS) - 1;
    // Each step can be undone, so that no two pages share a frame.
    let mixed = (offset >> PAGE_LOG2).wrapping_mul(0x9e_3779) & MASK;
    let mixed = (mixed ^ mixed >> 11).wrapping_mul(0x85_eb6b) & MASK;
    (mixed ^ mixed >> 13) << PAGE_LOG2 | offset & ((1 << PAGE_LOG2) - 1)
}

/// Refuses fields that overlap, or reach beyond their element, old or new.
fn check(fields: &[PlacedField], array: &Rearranged) -> Result<(), String> {
    let mut behind = 0;
    for field in fields {
        let part = array.parts.get(field.part as usize);
        let ends = field.at.checked_add(field.to.saturating_sub(field.from));
        let fits = part.zip(ends).is_some_and(|(part, end)| end <= *part);
        if field.from < behind || field.from >= field.to || field.to > array.bytes || !fits {
            return Err(format!("the bytes {} to {} of an element have no sound place", field.from, field.to));
        }
        behind = field.to;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(from: u64, to: u64, part: u32, at: u64) -> PlacedField {
        PlacedField { from, to, part, at }
    }

    fn fields(parts: &[u64], fields: &[PlacedField]) -> Result<Fields, ModelError> {
        let elements = vec![Elements { from: 0x1000, count: 100 }, Elements { from: 0x8000, count: 2 }];
        let array = Rearranged { elements, bytes: 24, begin: 0, parts: parts.to_vec(), fields: fields.to_vec() };
        Fields::new(&AddressPolicy::Fields { arrays: vec![array] })
    }

    fn at(place: Place) -> (u64, u32) {
        (place.vaddr.wrapping_sub(NEW_ADDRESSES), place.bytes)
    }

    #[test]
    fn a_reference_is_cut_where_its_fields_part() {
        // Keys of 8 bytes in an array of their own, the 12 bytes behind them in another; 4 bytes of no field.
        let fields = fields(&[8, 16], &[field(0, 8, 0, 0), field(8, 20, 1, 0)]).unwrap();
        let place = |vaddr, size| fields.place(0x7_0000 + vaddr, vaddr, size);
        assert_eq!(at(place(0x1000, 24)), (0, 8));
        assert_eq!(at(place(0x1008, 16)), (0x1000, 12), "the second array begins at a page");
        assert_eq!(place(0x1014, 4), Place { address: 0x7_1014, vaddr: 0x1014, bytes: 4 }, "bytes of no field stay");
        assert_eq!(at(place(0x1000 + 24 * 3 + 2, 4)), (26, 4));
        assert_eq!(at(place(0x8000 + 24, 8)), (101 * 8, 8), "the last element of the second run");
        assert_eq!(place(0xff8, 64).bytes, 8);
        assert!(fields.concerns(0xffc, 8) && !fields.concerns(0xff8, 8));
    }

    #[test]
    fn pages_of_the_new_arrays_have_frames_of_their_own() {
        let frames: FxHashSet<u64> = (0..1u64 << 16).map(|page| frame(page << PAGE_LOG2) >> PAGE_LOG2).collect();
        assert_eq!(frames.len(), 1 << 16);
        assert!(frames.iter().all(|frame| *frame < 1 << FRAME_BITS));
        assert_eq!(frame(0x1234) & 0xfff, 0x234);
    }

    #[test]
    fn a_policy_without_sense_is_refused() {
        let refused = |parts: &[u64], list: &[PlacedField]| fields(parts, list).is_err();
        assert!(refused(&[8], &[field(0, 8, 0, 0), field(4, 12, 0, 0)]), "fields overlap");
        assert!(refused(&[8], &[field(0, 8, 1, 0)]), "no such array");
        assert!(refused(&[8], &[field(0, 8, 0, 4)]), "beyond the new element");
        assert!(refused(&[64], &[field(20, 28, 0, 0)]), "beyond the element");
        assert!(refused(&[1 << 40], &[field(0, 8, 0, 0)]), "arrays of 100 TiB");
    }
}
