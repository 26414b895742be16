//! Code as it was when QEMU translated it: it shows how the addresses of a program's accesses come about.
//!
//! The layout is that of `NM_C_CODE` in `native/include/nearmiss_tap.h`.

use crate::units::InsnId;

/// Bytes of `physical address` and `instructions`.
const HEAD_BYTES: usize = 12;
/// Bytes of one named instruction.
const NAMED_BYTES: usize = 6;
/// Longest block in bytes: QEMU translates no more at once.
const MAX_CODE_BYTES: usize = 16 << 10;

/// Instructions that follow one another: a translated block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeBlock<'a> {
    /// Virtual address of the first byte.
    pub vaddr: u64,
    /// Physical address of the first byte; `u64::MAX`: unknown.
    pub paddr: u64,
    /// The machine code.
    pub code: &'a [u8],
    named: &'a [u8],
}

impl<'a> CodeBlock<'a> {
    /// From the payload of a control record.
    ///
    /// Errors: a length, or an offset of an instruction, that reaches beyond the payload; instructions out of order.
    pub fn decode(vaddr: u64, payload: &'a [u8]) -> Result<Self, &'static str> {
        let (head, rest) = payload.split_at_checked(HEAD_BYTES).ok_or("code without a head")?;
        let paddr = bytemuck::pod_read_unaligned(&head[..8]);
        let count: u32 = bytemuck::pod_read_unaligned(&head[8..]);
        let named_bytes = (count as usize).checked_mul(NAMED_BYTES).ok_or("code names too many instructions")?;
        let (named, code) = rest.split_at_checked(named_bytes).ok_or("code names too many instructions")?;
        let block = CodeBlock { vaddr, paddr, code, named };
        if code.is_empty() || code.len() > MAX_CODE_BYTES {
            return Err("code of no length that QEMU translates");
        }
        if block.named().any(|(offset, _)| usize::from(offset) >= code.len()) {
            return Err("an instruction lies beyond its code");
        }
        if !block.named().is_sorted_by(|before, after| before.0 < after.0) {
            return Err("instructions that do not follow one another");
        }
        Ok(block)
    }

    /// The instructions that records name, by offset from the first byte, ascending.
    pub fn named(&self) -> impl Iterator<Item = (u16, InsnId)> + 'a {
        self.named
            .chunks_exact(NAMED_BYTES)
            .map(|named| (bytemuck::pod_read_unaligned(&named[..2]), InsnId(bytemuck::pod_read_unaligned(&named[2..]))))
    }

    /// The payload of a control record, its length not yet rounded up.
    pub fn encode(paddr: u64, named: &[(u16, InsnId)], code: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(HEAD_BYTES + named.len() * NAMED_BYTES + code.len());
        payload.extend_from_slice(&paddr.to_le_bytes());
        payload.extend_from_slice(&(named.len() as u32).to_le_bytes());
        for (offset, insn) in named {
            payload.extend_from_slice(&offset.to_le_bytes());
            payload.extend_from_slice(&insn.0.to_le_bytes());
        }
        payload.extend_from_slice(code);
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_whole_and_a_short_payload_is_refused() {
        let named = [(0, InsnId(7)), (3, InsnId(9))];
        let payload = CodeBlock::encode(0x1000, &named, &[0x48, 0x8b, 0x00, 0xc3]);
        let block = CodeBlock::decode(0x40_0000, &payload).unwrap();
        assert_eq!((block.vaddr, block.paddr, block.code), (0x40_0000, 0x1000, &[0x48, 0x8b, 0x00, 0xc3][..]));
        assert_eq!(block.named().collect::<Vec<_>>(), named);
        for length in 0..payload.len() - 1 {
            assert!(CodeBlock::decode(0, &payload[..length]).is_err(), "{length} bytes");
        }
        let refused = |named: &[(u16, InsnId)]| CodeBlock::decode(0, &CodeBlock::encode(0, named, &[0x90; 4])).is_err();
        assert!(refused(&[(4, InsnId(1))]), "beyond the code");
        assert!(
            refused(&[(2, InsnId(1)), (1, InsnId(2))]) && refused(&[(1, InsnId(1)), (1, InsnId(2))]),
            "out of order"
        );
        assert!(!refused(&[(1, InsnId(2)), (2, InsnId(1))]));
    }
}
