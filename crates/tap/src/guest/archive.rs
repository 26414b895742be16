//! The archive of what the command wrote, held to what the agent sends: the guest is not trusted.

use std::io::{self, Read};

/// Files, directories and links, before all of which a longer name may come.
const KINDS: &[u8] = b"052LK";
const RECORD: usize = 512;
const LONGEST_NAME: u64 = 4096;
const MOST_ENTRIES: u64 = 1 << 20;

/// Passes an archive on, and refuses what the agent never sends: kinds of entries that name owners or places, or that
/// are read into memory whole; and more than a number of bytes.
pub(super) struct Checked<R> {
    from: R,
    /// Bytes of the header that is passed on.
    header: [u8; RECORD],
    passed: usize,
    /// Bytes of the entry's content, padding included, that follow.
    content: u64,
    entries: u64,
    bytes_left: u64,
    most: u64,
}

impl<R: Read> Checked<R> {
    /// `most`: bytes in all.
    pub(super) fn new(from: R, most: u64) -> Self {
        Self { from, header: [0; RECORD], passed: RECORD, content: 0, entries: 0, bytes_left: most, most }
    }

    /// Reads the next header; `false` at the end.
    fn next_header(&mut self) -> io::Result<bool> {
        match self.from.read(&mut self.header[..1])? {
            0 => return Ok(false),
            _ => self.from.read_exact(&mut self.header[1..])?,
        }
        self.take(RECORD as u64)?;
        self.passed = 0;
        self.content = match self.header.iter().all(|byte| *byte == 0) {
            true => 0,
            false => self.content_of_entry()?,
        };
        Ok(true)
    }

    fn content_of_entry(&mut self) -> io::Result<u64> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(refused(&format!("more than {MOST_ENTRIES} entries")));
        }
        let header = tar::Header::from_byte_slice(&self.header);
        let (kind, size) = (header.entry_type().as_byte(), header.entry_size()?);
        if !KINDS.contains(&kind) {
            return Err(refused(&format!("an entry of kind {kind}")));
        }
        if matches!(kind, b'L' | b'K') && size > LONGEST_NAME {
            return Err(refused(&format!("a name of {size} bytes")));
        }
        size.checked_next_multiple_of(RECORD as u64).ok_or_else(|| refused("an entry without end"))
    }

    fn take(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            refused(&format!("more than {} MiB, which is more than the guest's memory holds", self.most >> 20))
        })?;
        Ok(())
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.passed == RECORD && self.content == 0 && !self.next_header()? {
            return Ok(0);
        }
        if self.passed < RECORD {
            let length = into.len().min(RECORD - self.passed);
            into[..length].copy_from_slice(&self.header[self.passed..][..length]);
            self.passed += length;
            return Ok(length);
        }
        let most = into.len().min(usize::try_from(self.content).unwrap_or(usize::MAX));
        let length = self.from.read(&mut into[..most])?;
        self.content -= length as u64;
        self.take(length as u64)?;
        Ok(length)
    }
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the guest sent {what}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn entry(kind: u8, size: u64, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_size(size);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(RECORD), 0);
        bytes
    }

    /// Returns the bytes that come through, read in odd portions; or why not.
    fn passed(archive: &[u8], most: u64) -> Result<Vec<u8>, String> {
        let (mut checked, mut out, mut block) = (Checked::new(archive, most), Vec::new(), [0; 77]);
        loop {
            match checked.read(&mut block).map_err(|error| error.to_string())? {
                0 => return Ok(out),
                length => out.extend_from_slice(&block[..length]),
            }
        }
    }

    #[test]
    fn entries_of_the_agent_pass_unchanged() {
        let whole = [
            entry(b'L', 150, &[b'n'; 150]),
            entry(b'0', 700, &[7; 700]),
            entry(b'5', 0, b""),
            entry(b'2', 0, b""),
            vec![0; 1024],
        ]
        .concat();
        assert_eq!(passed(&whole, 1 << 20), Ok(whole.clone()));
        assert_eq!(passed(&whole, whole.len() as u64), Ok(whole));
    }

    #[test]
    fn entries_that_the_agent_never_sends_are_refused() {
        for kind in [b'1', b'3', b'x', b'g', b'S'] {
            assert_eq!(passed(&entry(kind, 0, b""), 1 << 20), Err(format!("the guest sent an entry of kind {kind}")));
        }
        assert_eq!(passed(&entry(b'L', 4097, b""), 1 << 20), Err("the guest sent a name of 4097 bytes".into()));
        let endless = [entry(b'0', 1 << 40, b""), vec![0; 2 << 20]].concat();
        let why = "the guest sent more than 1 MiB, which is more than the guest's memory holds";
        assert_eq!(passed(&endless, 1 << 20), Err(why.into()));
        assert_eq!(passed(&entry(b'0', u64::MAX, b""), 1 << 20), Err("the guest sent an entry without end".into()));
        let empty = entry(b'0', 0, b"");
        let many = empty.repeat(MOST_ENTRIES as usize + 1);
        assert_eq!(passed(&many, 1 << 40), Err("the guest sent more than 1048576 entries".into()));
        assert!(passed(&empty[..100], 1 << 20).is_err(), "half a header");
    }
}
