//! Fields: the parts of the elements of an array, or of blocks of one size, that a command uses, and those that it uses
//! together.
//!
//! A first replay finds the bytes of an element ([`ElementSizes`]): an instruction that uses one field comes back at
//! multiples of them. A second one counts by field ([`FieldUses`]). Both need a trace of every access.

mod named;
mod sizes;
mod spans;
mod uses;

pub use named::{UsedElements, UsedField};
pub use sizes::{ElementSize, ElementSizes, SizesByObject};
pub use uses::FieldUses;

use super::objects::{Key, ObjectId};
use super::touches::Touches;
use super::tracker::USER_END;
use crate::observer::Effective;

/// A reference of the command, and the object that it falls into.
struct Touched {
    cpu: usize,
    object: ObjectId,
    /// First address of the object.
    start: u64,
}

/// Bytes ahead of a block that glibc's malloc maps for itself.
const MAPPED_HEADER: u64 = 16;

/// Returns the object of a reference, if elements are looked for there: in blocks, variables and mappings without a file,
/// which are taken for blocks whose allocation was not recorded.
#[inline]
fn touched(touches: &mut Touches, reference: &Effective) -> Option<Touched> {
    let cpu = touches.data(reference)?;
    let record = reference.record;
    if record.vaddr() >= USER_END || record.is_kernel() || !touches.runs_command(cpu) {
        return None;
    }
    let (object, start) = touches.tracker.find(touches.pid(cpu), record.vaddr(), record.physical_page());
    let key = &touches.tracker.objects.rows[object.0 as usize].key;
    let start = match key {
        Key::Heap { .. } | Key::Managed { .. } | Key::Global { .. } => start,
        Key::Anonymous { .. } => start + MAPPED_HEADER,
        _ => return None,
    };
    (record.vaddr() >= start).then_some(Touched { cpu, object, start })
}
