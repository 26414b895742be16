//! Reads whole messages from bytes that come in pieces, as connections do. Fuzz targets and random tests drive it.

use super::chunked::Decoder;
use super::request::{FIELDS_MOST, FieldRoom};
use super::{BodyLength, Refusal, request, response};
use http::Method;
use std::mem::MaybeUninit;

/// A message: what its head was, the content, and how many bytes it took. Without a number it is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Method and target, or the status.
    pub head: String,
    /// The content so far.
    pub content: Vec<u8>,
    /// The bytes of the message, once it is complete.
    pub size: Option<usize>,
}

/// Reads a request that comes in pieces of `cut` bytes; none where its head is not complete.
pub fn request(input: &[u8], cut: usize) -> Result<Option<Message>, Refusal> {
    read(input, cut, |input| {
        let mut room: FieldRoom<'_> = [const { MaybeUninit::uninit() }; FIELDS_MOST];
        let head = request::parse(input, &mut room)?;
        Ok(head.map(|head| (format!("{} {}{}", head.method, head.authority, head.target), head.body, head.size)))
    })
}

/// Reads a response to a GET that comes in pieces of `cut` bytes; none where its head is not complete.
pub fn response(input: &[u8], cut: usize) -> Result<Option<Message>, Refusal> {
    read(input, cut, |input| {
        let head = response::parse(input, &Method::GET)?;
        Ok(head.map(|head| (head.status.to_string(), head.body, head.size)))
    })
}

type Parsed = Result<Option<(String, BodyLength, usize)>, Refusal>;

fn read(input: &[u8], cut: usize, parse: impl Fn(&[u8]) -> Parsed) -> Result<Option<Message>, Refusal> {
    let Some((head, length, size)) = first_head(input, cut, parse)? else { return Ok(None) };
    let mut decoder = Decoder::new(length);
    let (mut content, mut used) = (Vec::new(), size);
    for piece in input[size..].chunks(cut.max(1)) {
        let mut rest = piece;
        while !rest.is_empty() && !decoder.done() {
            let step = decoder.step(rest)?;
            content.extend_from_slice(&rest[step.content]);
            used += step.used;
            rest = &rest[step.used..];
        }
    }
    let size = decoder.done().then_some(used);
    Ok(Some(Message { head, content, size }))
}

fn first_head(input: &[u8], cut: usize, parse: impl Fn(&[u8]) -> Parsed) -> Parsed {
    let mut have = 0;
    while have < input.len() {
        have = have.saturating_add(cut.max(1)).min(input.len());
        if let Some(found) = parse(&input[..have])? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
