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
#[derive(Debug, Default)]
pub struct Chunks {
    stage: Stage,
    /// Data left in the chunk.
    left: u64,
    /// The current line so far, outside a chunk's data.
    line: Vec<u8>,
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
                _ => self.read_line(&bytes[at..])?,
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
            self.stage = Stage::DataEnd;
        }
    }

    /// Reads on in the line, to its end if `bytes` hold it, and returns how many bytes it took.
    fn read_line(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let taken = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        if self.line.len() + taken > LONGEST_LINE {
            return Err(Fault::Malformed);
        }
        self.line.extend_from_slice(&bytes[..taken]);
        if let Some(next) = self.after_line()? {
            self.stage = next;
            self.line.clear();
        }
        Ok(taken)
    }

    /// Returns the stage that follows the line; `None` while the line is not whole.
    fn after_line(&mut self) -> Result<Option<Stage>, Fault> {
        let is_whole = self.line.ends_with(b"\n");
        match (self.stage, &self.line[..]) {
            (Stage::Size, line) => {
                let size = size(line, is_whole)?;
                self.left = size.unwrap_or(0);
                Ok(size.map(|size| if size == 0 { Stage::Trailer } else { Stage::Data }))
            }
            (Stage::DataEnd, b"\r") => Ok(None),
            (Stage::DataEnd, b"\r\n") => Ok(Some(Stage::Size)),
            (Stage::DataEnd, _) => Err(Fault::Malformed),
            // A trailer ends with an empty line; its fields are not looked at.
            (_, b"\r\n" | b"\n") => Ok(Some(Stage::Done)),
            _ => Ok(is_whole.then_some(Stage::Trailer)),
        }
    }
}

/// Reads the line of a chunk's size; `None` while the line is not whole. httparse reads a line without a digit as 0,
/// which would end the body, and a line feed within an extension as a part of it; both are refused here.
fn size(line: &[u8], is_whole: bool) -> Result<Option<u64>, Fault> {
    match httparse::parse_chunk_size(line) {
        _ if !line.first().is_some_and(u8::is_ascii_hexdigit) => Err(Fault::Malformed),
        Ok(httparse::Status::Complete((_, size))) => Ok(Some(size)),
        Ok(httparse::Status::Partial) if !is_whole => Ok(None),
        _ => Err(Fault::Malformed),
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
    fn malformed_chunks_are_refused() {
        for input in [
            &b"x\r\n"[..],
            b"\r\n",
            b";x\r\n",
            b"-1\r\n",
            b"1\na\r\n",
            b"1;x\na\r\n",
            b"2\r\nabc\r\n",
            b"11111111111111111\r\n",
            b"1\r\na\n\n0\r\n\r\n",
        ] {
            assert_eq!(read(input, 64), Err(Fault::Malformed), "{:?}", String::from_utf8_lossy(input));
        }
    }
}
