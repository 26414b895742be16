//! The decoder of bodies: it returns which bytes of its input are content, and where the body ends.
//!
//! The line of a chunk's size is parsed here, because `httparse::parse_chunk_size` is laxer than RFC 9112 section 7.1.
//! It reads a line without a digit as the size 0, which ends the body, and takes any byte within an extension, a line
//! feed included. A recipient behind that accepts less would see another message (request smuggling). It also sets no
//! limit on the line's length, and needs the whole line in one piece.

use super::{BodyLength, Refusal, fields, write};
use std::ops::Range;

/// Longest line of a chunk's size with its extension.
const LINE_MOST: usize = 256;
/// Most bytes of trailers.
const TRAILERS_MOST: usize = 8192;

/// Reads one body.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// The trailer section with its empty line, without the fields that no trailer may set.
    pub trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fixed(u64),
    UntilClose,
    Size { value: u64, digits: u8, length: usize },
    Blank { value: u64, length: usize },
    Extension { value: u64, length: usize },
    SizeEnd { value: u64 },
    Chunk(u64),
    ChunkCr,
    ChunkLf,
    Trailers,
    Done,
}

/// Result of one look at the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that are dealt with.
    pub used: usize,
    /// Range of the content in the input.
    pub content: Range<usize>,
}

const SIZE: State = State::Size { value: 0, digits: 0, length: 0 };

impl Decoder {
    /// A decoder for a body that ends so.
    pub fn new(length: BodyLength) -> Self {
        let state = match length {
            BodyLength::None | BodyLength::Fixed(0) => State::Done,
            BodyLength::Fixed(length) => State::Fixed(length),
            BodyLength::Chunked => SIZE,
            BodyLength::Close => State::UntilClose,
        };
        Decoder { state, trailers: Vec::new() }
    }

    /// Returns whether the body is complete.
    pub fn done(&self) -> bool {
        self.state == State::Done
    }

    /// Returns whether the end of the connection here is the end of the body.
    pub fn may_close(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// Reads the input up to the end of a piece of content, or all of it.
    pub fn step(&mut self, input: &[u8]) -> Result<Step, Refusal> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            match self.state {
                State::Fixed(left) => return Ok(self.content(at, input.len(), left, State::Fixed, State::Done)),
                State::Chunk(left) => return Ok(self.content(at, input.len(), left, State::Chunk, State::ChunkCr)),
                State::UntilClose => return Ok(Step { used: input.len(), content: at..input.len() }),
                _ => {
                    self.state = self.byte(input[at])?;
                    at += 1;
                }
            }
        }
        Ok(Step { used: at, content: at..at })
    }

    fn content(&mut self, at: usize, end: usize, left: u64, more: fn(u64) -> State, after: State) -> Step {
        let taken = left.min((end - at) as u64);
        self.state = if taken == left { after } else { more(left - taken) };
        let upto = at + taken as usize;
        Step { used: upto, content: at..upto }
    }

    fn byte(&mut self, byte: u8) -> Result<State, Refusal> {
        match self.state {
            State::Size { value, digits, length } => size_byte(value, digits, length, byte),
            State::Blank { value, length } => blank_byte(value, length, byte),
            State::Extension { value, length } => extension_byte(value, length, byte),
            State::SizeEnd { value } => match (byte, value) {
                (b'\n', 0) => Ok(State::Trailers),
                (b'\n', value) => Ok(State::Chunk(value)),
                _ => Err(Refusal::bad("a chunk's size does not end in CR LF")),
            },
            State::ChunkCr if byte == b'\r' => Ok(State::ChunkLf),
            State::ChunkLf if byte == b'\n' => Ok(SIZE),
            State::ChunkCr | State::ChunkLf => Err(Refusal::bad("a chunk does not end in CR LF")),
            State::Trailers => self.trailer_byte(byte),
            state => Ok(state),
        }
    }

    fn trailer_byte(&mut self, byte: u8) -> Result<State, Refusal> {
        self.trailers.push(byte);
        if self.trailers.len() > TRAILERS_MOST {
            return Err(Refusal::bad("trailers are too long"));
        }
        let last = self.trailers.len() - 1;
        if byte == b'\n' && (last == 0 || self.trailers[last - 1] != b'\r') {
            return Err(Refusal::bad("a trailer does not end in CR LF"));
        }
        if self.trailers != b"\r\n" && !self.trailers.ends_with(b"\r\n\r\n") {
            return Ok(State::Trailers);
        }
        self.trailers = passed_on(&self.trailers)?;
        Ok(State::Done)
    }
}

/// The trailers that may go on. A recipient might take a trailer for a field of the head, where this one would change
/// how the message is framed, routed, authorised or cached (RFC 9110 section 6.5.1).
fn passed_on(trailers: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut room = [httparse::EMPTY_HEADER; 32];
    let Ok(httparse::Status::Complete((_, read))) = httparse::parse_headers(trailers, &mut room) else {
        return Err(Refusal::bad("trailers are not readable"));
    };
    let mut out = Vec::new();
    for field in read.iter().filter(|field| fields::is_trailer(field.name)) {
        write::field(&mut out, field.name, field.value);
    }
    out.extend_from_slice(b"\r\n");
    Ok(out)
}

fn size_byte(value: u64, digits: u8, length: usize, byte: u8) -> Result<State, Refusal> {
    let digit = (byte as char).to_digit(16);
    match (byte, digit) {
        (_, Some(digit)) if digits < 15 => {
            Ok(State::Size { value: value << 4 | u64::from(digit), digits: digits + 1, length: length + 1 })
        }
        (b'\r', _) if digits > 0 => Ok(State::SizeEnd { value }),
        (b';', _) if digits > 0 => Ok(State::Extension { value, length: length + 1 }),
        (b' ' | b'\t', _) if digits > 0 => Ok(State::Blank { value, length: length + 1 }),
        _ => Err(Refusal::bad("a chunk's size is no number")),
    }
}

/// White space behind the size: another number there would be a second size.
fn blank_byte(value: u64, length: usize, byte: u8) -> Result<State, Refusal> {
    match byte {
        b' ' | b'\t' if length < LINE_MOST => Ok(State::Blank { value, length: length + 1 }),
        b';' => Ok(State::Extension { value, length: length + 1 }),
        b'\r' => Ok(State::SizeEnd { value }),
        _ => Err(Refusal::bad("something stands behind a chunk's size")),
    }
}

fn extension_byte(value: u64, length: usize, byte: u8) -> Result<State, Refusal> {
    match byte {
        b'\r' => Ok(State::SizeEnd { value }),
        b'\t' | b' '..=b'~' | 0x80.. if length < LINE_MOST => Ok(State::Extension { value, length: length + 1 }),
        _ => Err(Refusal::bad("a chunk's extension is not readable")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content, the trailers and how much of the input was used, in pieces of `piece` bytes.
    fn decode(length: BodyLength, input: &[u8], piece: usize) -> Result<(Vec<u8>, Vec<u8>, usize, bool), Refusal> {
        let mut decoder = Decoder::new(length);
        let (mut content, mut used) = (Vec::new(), 0);
        for part in input.chunks(piece) {
            let mut rest = part;
            while !rest.is_empty() && !decoder.done() {
                let step = decoder.step(rest)?;
                content.extend_from_slice(&rest[step.content.clone()]);
                used += step.used;
                rest = &rest[step.used..];
            }
        }
        let done = decoder.done();
        Ok((content, decoder.trailers, used, done))
    }

    #[test]
    fn chunks_are_joined_however_they_arrive() {
        let input = b"3\r\nabc\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\nA: b\r\n\r\nGET";
        for piece in 1..input.len() {
            let read = decode(BodyLength::Chunked, input, piece);
            assert_eq!(read, Ok((b"abc0123456789".to_vec(), b"A: b\r\n\r\n".to_vec(), input.len() - 3, true)));
        }
    }

    #[test]
    fn a_fixed_body_ends_at_its_length() {
        assert_eq!(decode(BodyLength::Fixed(3), b"abcGET", 4), Ok((b"abc".to_vec(), vec![], 3, true)));
        assert_eq!(decode(BodyLength::Fixed(9), b"abc", 2), Ok((b"abc".to_vec(), vec![], 3, false)));
        assert_eq!(decode(BodyLength::Close, b"abc", 2), Ok((b"abc".to_vec(), vec![], 3, false)));
    }

    #[test]
    fn a_size_may_be_padded() {
        let input = b"3 \t\r\nabc\r\n2 ; x = y\r\nde\r\n0 \r\n\r\n";
        let read = decode(BodyLength::Chunked, input, 1);
        assert_eq!(read, Ok((b"abcde".to_vec(), b"\r\n".to_vec(), input.len(), true)));
    }

    #[test]
    fn trailers_that_would_change_the_message_go_no_further() {
        let input = b"0\r\nA: b\r\nContent-Length: 3\r\ntransfer-encoding: chunked\r\nHost: b\r\nC:d \r\n\r\n";
        let read = decode(BodyLength::Chunked, input, input.len());
        assert_eq!(read, Ok((vec![], b"A: b\r\nC: d\r\n\r\n".to_vec(), input.len(), true)));
    }

    #[test]
    fn loose_chunks_are_refused() {
        for input in [
            &b"\r\n"[..],
            b"-1\r\n",
            b"0x3\r\nabc",
            b"g\r\n",
            b"3\nabc",
            b"3\r\nabcd\r\n",
            b"3\r\nabc\n0\r\n\r\n",
            b"3\r\nabc\r\n;",
            b"1000000000000000\r\n",
            b"3 \0\r\nabc",
            b"3 4\r\nabc",
            b"0\t3\r\n",
            b"3 x;y\r\nabc",
            b"3;a\rb\r\nabc",
            b"0\r\nA : b\r\n\r\n",
            b"0\r\n\n",
            b"0\r\nA: b\n\r\n",
            b"0\r\n A: b\r\n\r\n",
        ] {
            assert!(decode(BodyLength::Chunked, input, input.len()).is_err(), "{:?}", String::from_utf8_lossy(input));
        }
        let long = [&b"3;"[..], &[b'x'; 300], b"\r\n"].concat();
        assert!(decode(BodyLength::Chunked, &long, 7).is_err());
    }
}
