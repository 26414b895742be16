//! The references of the blocked product: what one thread of a group does while it computes rows of a block.
//!
//! `C[I,J] += A[I,K] · B[K,J]`, rows of the result one after another: for each row of the block of A, all rows of the
//! block of B are read from one end to the other, and a row of C is read and written as often. All threads of a group
//! have the block of B in common; rows of A and C are each thread's own.

use nearmiss_record::reference::{Kind, Record};
use nearmiss_record::units::InsnId;

const LINE_BYTES: u64 = 64;
/// Distance from one matrix to the next: room for 4,900 × 4,900 doubles, and a page so that they are not aligned.
const MATRIX_BYTES: u64 = (192 << 20) + 4096;

/// Shape of the matrices and their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements of a matrix's row.
    pub row: u64,
    /// Elements of a block's row, and rows of a block.
    pub block: u64,
    /// Bytes of an element.
    pub element: u64,
}

impl Shape {
    /// Bytes of a block.
    pub fn block_bytes(self) -> u64 {
        self.block * self.block * self.element
    }

    /// Multiplications and additions for one row of a block of the result.
    pub fn multiplications(self) -> u64 {
        self.block * self.block
    }
}

/// One thread at one block: the block's row and column of B, and the thread's own rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadBlock {
    /// Block row of B, which is the block column of A.
    pub inner: u64,
    /// Block column of B and C: each group has its own.
    pub column: u64,
    /// First row of A and C.
    pub first_row: u64,
    /// Row of B's block with which a sweep begins: threads are not in step.
    pub phase: u64,
}

/// Writes references of a thread.
pub struct Writer {
    shape: Shape,
    /// Instructions of one multiplication and addition.
    instructions: u64,
    /// Records written.
    pub records: Vec<Record>,
}

impl Writer {
    /// Creates the writer of a product.
    pub fn new(shape: Shape, instructions: u64) -> Self {
        Writer { shape, instructions, records: Vec::new() }
    }

    fn address(&self, matrix: u64, row: u64, column: u64) -> u64 {
        matrix * MATRIX_BYTES + (row * self.shape.row + column) * self.shape.element
    }

    fn touch(&mut self, kind: Kind, address: u64, bytes: u64, instructions: u64) {
        let insn = InsnId(kind as u32 + 1);
        self.records.push(Record::reference(kind, address, bytes as u32, 0, insn, address >> 12, instructions as u8));
    }

    /// The `number`-th row of the thread's part. Returns its instructions.
    pub fn row(&mut self, part: &ThreadBlock, number: u64) -> u64 {
        let (block, row) = (self.shape.block, part.first_row + number);
        let before = self.records.len();
        for step in 0..block {
            let k = (part.phase + step) % block;
            if k * self.shape.element % LINE_BYTES < self.shape.element {
                self.touch(Kind::Load, self.address(0, row, part.inner * block + k), self.shape.element, 0);
            }
            self.sweep(part, row, k);
        }
        self.records[before..].iter().map(|record| record.instructions()).sum()
    }

    /// One row of B's block, times one element of A, onto the row of C: line by line of B.
    fn sweep(&mut self, part: &ThreadBlock, row: u64, k: u64) {
        let (block, element) = (self.shape.block, self.shape.element);
        let from = self.address(1, part.inner * block + k, part.column * block);
        let to = self.address(2, row, part.column * block);
        let end = from + block * element;
        let mut at = from;
        while at < end {
            let next = (at / LINE_BYTES * LINE_BYTES + LINE_BYTES).min(end);
            let third = (next - at) / element * self.instructions / 3;
            self.touch(Kind::Load, at, next - at, third);
            // Equal elements of C may lie in two lines; the line of the first stands for both.
            let same = to + (at - from);
            let bytes = (next - at).min(LINE_BYTES - same % LINE_BYTES);
            self.touch(Kind::Load, same, bytes, third);
            self.touch(Kind::Store, same, bytes, third);
            at = next;
        }
    }
}
