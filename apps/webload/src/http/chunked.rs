//! The chunked transfer coding (RFC 9112, section 7.1), read piece by piece.

use crate::load::Fault;

/// The longest chunk-size line that is read on, extensions included.
const LONGEST_LINE: usize = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// In a line with a chunk's size.
    #[default]
    Size,
    /// In a chunk's data.
    Data,
    /// In the line end after a chunk's data.
    DataEnd,
    /// In the trailer section.
    Trailer,
    /// All was read.
    Done,
}

/// State of a reader of chunks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chunks {
    stage: Stage,
    /// Data left in the chunk; while its size is read, the size so far.
    left: u64,
    digits: u8,
    in_extension: bool,
    line: usize,
}

impl Chunks {
    /// Reads from `bytes`, hands each piece of data to `data`, and returns how many bytes belong to the body.
    pub fn read(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8]) -> Result<(), Fault>) -> Result<usize, Fault> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            at += match self.stage {
                Stage::Data => {
                    let piece = (bytes.len() - at).min(usize::try_from(self.left).unwrap_or(usize::MAX));
                    data(&bytes[at..at + piece])?;
                    self.take(piece);
                    piece
                }
                _ => {
                    self.byte(bytes[at])?;
                    1
                }
            };
        }
        Ok(at)
    }

    /// Returns whether the last chunk and the trailer were read.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    fn take(&mut self, piece: usize) {
        self.left -= piece as u64;
        if self.left == 0 {
            (self.stage, self.line) = (Stage::DataEnd, 0);
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), Fault> {
        self.line += 1;
        if self.line > LONGEST_LINE {
            return Err(Fault::Malformed);
        }
        match self.stage {
            Stage::Size => self.size(byte),
            Stage::DataEnd => match (self.line, byte) {
                (1, b'\r') => Ok(()),
                (2, b'\n') => {
                    *self = Chunks::default();
                    Ok(())
                }
                _ => Err(Fault::Malformed),
            },
            _ => self.trailer(byte),
        }
    }

    fn size(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'\n' if self.digits > 0 => {
                let stage = if self.left == 0 { Stage::Trailer } else { Stage::Data };
                (self.stage, self.line) = (stage, 0);
            }
            b';' | b'\r' | b' ' | b'\t' if self.digits > 0 => self.in_extension = true,
            b'\n' => return Err(Fault::Malformed),
            _ if self.in_extension => {}
            _ => {
                let digit = char::from(byte).to_digit(16).ok_or(Fault::Malformed)?;
                self.left = self.left << 4 | u64::from(digit);
                self.digits += 1;
                // Sixteen digits fill the number.
                if self.digits > 15 {
                    return Err(Fault::Malformed);
                }
            }
        }
        Ok(())
    }

    /// A trailer ends with an empty line; its fields are not looked at.
    fn trailer(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'\n' if self.line <= 1 => self.stage = Stage::Done,
            b'\n' => self.line = 0,
            // A carriage return alone does not make a line longer than empty.
            b'\r' if self.line == 1 => self.line = 0,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data and how many bytes were taken, with the input cut into pieces of `step` bytes.
    fn read(input: &[u8], step: usize) -> Result<(Vec<u8>, usize, bool), Fault> {
        let (mut chunks, mut data, mut taken) = (Chunks::default(), Vec::new(), 0);
        for piece in input.chunks(step) {
            taken += chunks.read(piece, |bytes| {
                data.extend_from_slice(bytes);
                Ok(())
            })?;
        }
        Ok((data, taken, chunks.is_done()))
    }

    #[test]
    fn chunks_read_the_same_however_they_arrive() {
        let input = b"5\r\nhello\r\nA;x=\"y\"\r\n, 10 bytes\r\n000\r\nTrailer: 1\r\n\r\nrest";
        for step in 1..=input.len() {
            assert_eq!(read(input, step), Ok((b"hello, 10 bytes".to_vec(), input.len() - 4, true)), "{step}");
        }
    }

    #[test]
    fn a_body_that_is_not_over_is_not_done() {
        assert_eq!(read(b"5\r\nhello\r\n0\r\n", 3), Ok((b"hello".to_vec(), 13, false)));
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for input in
            [&b"x\r\n"[..], b"\r\n", b"-1\r\n", b"2\r\nabc\r\n", b"11111111111111111\r\n", b"1\r\na\n\n0\r\n\r\n"]
        {
            assert_eq!(read(input, 64), Err(Fault::Malformed), "{:?}", String::from_utf8_lossy(input));
        }
    }
}
