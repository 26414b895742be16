//! Bodies that anyone can check: the bytes are a function of a seed and the offset.

/// One step of splitmix64 (Steele, Lea and Flood 2014): a good hash of a counter.
pub const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The content that belongs to a seed, endless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    seed: u64,
}

impl Content {
    /// The content of `seed`.
    pub const fn of(seed: u64) -> Content {
        Content { seed }
    }

    const fn word(self, index: u64) -> [u8; 8] {
        mix(self.seed ^ index.wrapping_mul(0xd134_2543_de82_ef95)).to_le_bytes()
    }

    /// Writes the bytes from offset `at` on over the whole of `out`.
    pub fn fill(self, at: u64, out: &mut [u8]) {
        let (head, rest) = out.split_at_mut(before_a_word(at).min(out.len()));
        let inside = (at % 8) as usize;
        head.copy_from_slice(&self.word(at / 8)[inside..inside + head.len()]);
        let first = at.div_ceil(8);
        for (word, index) in rest.chunks_mut(8).zip(first..) {
            word.copy_from_slice(&self.word(index)[..word.len()]);
        }
    }

    /// Returns whether `bytes` are the content from offset `at` on.
    pub fn is(self, at: u64, bytes: &[u8]) -> bool {
        let (head, rest) = bytes.split_at(before_a_word(at).min(bytes.len()));
        let inside = (at % 8) as usize;
        let mut words = rest.chunks(8).zip(at.div_ceil(8)..);
        *head == self.word(at / 8)[inside..inside + head.len()]
            && words.all(|(word, index)| *word == self.word(index)[..word.len()])
    }
}

/// Bytes from offset `at` to the next whole word.
const fn before_a_word(at: u64) -> usize {
    ((8 - at % 8) % 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The obvious twin: one byte at a time.
    fn byte(content: Content, at: u64) -> u8 {
        content.word(at / 8)[(at % 8) as usize]
    }

    #[test]
    fn a_piece_of_any_offset_and_length_is_what_its_bytes_are() {
        let content = Content::of(17);
        for at in 0..20 {
            for length in 0..30 {
                let mut piece = vec![0; length];
                content.fill(at, &mut piece);
                let slow: Vec<u8> = (at..at + length as u64).map(|at| byte(content, at)).collect();
                assert_eq!(piece, slow, "{length} bytes at {at}");
                assert!(content.is(at, &piece));
            }
        }
    }

    #[test]
    fn one_wrong_byte_is_seen_wherever_it_lies() {
        let content = Content::of(1);
        let mut body = vec![0; 41];
        content.fill(3, &mut body);
        for at in 0..body.len() {
            body[at] ^= 1;
            assert!(!content.is(3, &body), "byte {at}");
            body[at] ^= 1;
        }
        assert!(!content.is(4, &body) && !Content::of(2).is(3, &body));
    }

    #[test]
    fn the_content_is_the_same_on_every_machine_and_in_every_version() {
        let mut body = [0; 4];
        Content::of(42).fill(0, &mut body);
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(body, mix(42).to_le_bytes()[..4]);
    }
}
