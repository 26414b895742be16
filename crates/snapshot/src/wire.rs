//! The encoding of CRIU's images: a magic number of four or eight bytes, then messages of Protocol Buffers, each behind
//! its length in four bytes. Only what is needed here: the fields of a message, one after the other.

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// A field, and its bytes with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) number: u64,
    pub(crate) value: Value<'a>,
    pub(crate) whole: &'a [u8],
}

/// The fields of a message, up to the first that is damaged.
pub(crate) fn fields(mut message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    std::iter::from_fn(move || {
        let (field, rest) = field(message)?;
        message = rest;
        Some(field)
    })
}

/// The messages behind a magic number of `skip` bytes.
pub(crate) fn messages(image: &[u8], skip: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = image.get(skip..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (message, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = behind;
        Some(message)
    })
}

/// A field of bytes, as it is written.
pub(crate) fn put_bytes(to: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_number(to, number << 3 | 2);
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn field(message: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (key, after_key) = number(message)?;
    let (value, rest) = match key & 7 {
        0 => number(after_key).map(|(value, rest)| (Value::Number(value), rest))?,
        1 => fixed(after_key, 8)?,
        2 => {
            let (length, behind) = number(after_key)?;
            let (bytes, rest) = behind.split_at_checked(usize::try_from(length).ok()?)?;
            (Value::Bytes(bytes), rest)
        }
        5 => fixed(after_key, 4)?,
        _ => return None,
    };
    Some((Field { number: key >> 3, value, whole: &message[..message.len() - rest.len()] }, rest))
}

fn fixed(from: &[u8], length: usize) -> Option<(Value<'_>, &[u8])> {
    from.split_at_checked(length).map(|(bytes, rest)| (Value::Bytes(bytes), rest))
}

fn number(from: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in from.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &from[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_message_reads_back() {
        let mut message = Vec::new();
        put_bytes(&mut message, 300, b"abc");
        message.extend([0x10, 0xae, 0x51]);
        let read: Vec<(u64, Value<'_>)> = fields(&message).map(|field| (field.number, field.value)).collect();
        assert_eq!(read, [(300, Value::Bytes(b"abc")), (2, Value::Number(10_414))]);
        assert_eq!(fields(&message).map(|field| field.whole.len()).sum::<usize>(), message.len());
    }

    #[test]
    fn damage_ends_it() {
        assert_eq!(fields(&[0x12, 0xff, 0x01, 0]).count(), 0, "more bytes than there are");
        assert_eq!(fields(&[0xff; 12]).count(), 0, "a number without an end");
        assert_eq!(messages(&[0, 0, 0, 0, 9, 0, 0, 0, 1], 4).count(), 0);
    }
}
