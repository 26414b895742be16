//! A standard input that two runs of the command read: the run ahead, and the recorded one.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};

use super::error::{GuestError, Tried};
use super::memory_file;

/// The archive that the guest boots from holds it.
const MOST: usize = 16 << 20;

/// An input in memory.
pub(super) struct Spooled {
    /// Content of the input.
    pub(super) content: Vec<u8>,
    /// The content as a stream, from its beginning.
    pub(super) stream: OwnedFd,
}

/// Reads a pipe or a regular file to its end. Errors: it is something else, too long, or does not end in time.
pub(super) fn spool(stream: &OwnedFd, within: Duration) -> Result<Spooled, GuestError> {
    let status = fstat(stream).tried("the standard input")?;
    let kind = FileType::from_raw_mode(status.st_mode);
    if !matches!(kind, FileType::Fifo | FileType::RegularFile) {
        return Err(refused("is neither a file nor a pipe, and cannot be read twice"));
    }
    let mut input = File::from(stream.try_clone().tried("the standard input")?);
    let mut content = Vec::new();
    let deadline = Instant::now() + within;
    let mut block = vec![0; 65536];
    loop {
        await_more(&input, deadline)?;
        match input.read(&mut block) {
            Ok(0) => break,
            Ok(length) => content.extend_from_slice(&block[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error).tried("reading the standard input"),
        }
        if content.len() > MOST {
            return Err(refused(&format!("has more than the {} MiB that can be kept for two runs", MOST >> 20)));
        }
    }
    let stream = memory_file::holding("nearmiss-input", &content)?;
    rustix::fs::seek(&stream, rustix::fs::SeekFrom::Start(0)).tried("the spooled input")?;
    Ok(Spooled { content, stream })
}

fn await_more(input: &File, deadline: Instant) -> Result<(), GuestError> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(refused("did not end within --warm-limit"));
        }
        let time = Timespec { tv_sec: left.as_secs() as _, tv_nsec: i64::from(left.subsec_nanos()) as _ };
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error).tried("waiting for the standard input"),
        }
    }
}

fn refused(why: &str) -> GuestError {
    GuestError::Config(format!("--warm: the standard input {why}: give the input as a file, or leave --warm out"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    const SOON: Duration = Duration::from_millis(200);
    /// A machine that does much else reads 16 MiB within that, too.
    const LATER: Duration = Duration::from_secs(60);

    fn why(stream: impl Into<OwnedFd>, limit: Duration) -> String {
        match spool(&stream.into(), limit) {
            Err(error) => error.to_string(),
            Ok(spooled) => panic!("{} bytes were spooled", spooled.content.len()),
        }
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_can_be_read_again() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"one two").unwrap();
        drop(writer);
        let spooled = spool(&reader.into(), LATER).unwrap();
        let mut again = String::new();
        File::from(spooled.stream).read_to_string(&mut again).unwrap();
        assert_eq!((spooled.content.as_slice(), again.as_str()), (b"one two".as_slice(), "one two"));
    }

    #[test]
    fn input_without_an_end_or_a_pipe_or_too_long_is_refused() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(why(reader, SOON).contains("did not end within --warm-limit"));
        drop(writer);
        assert!(why(File::open("/dev/zero").unwrap(), LATER).contains("neither a file nor a pipe"));
        assert!(why(UnixStream::pair().unwrap().0, LATER).contains("neither a file nor a pipe"));
        let long = tempfile::tempfile().unwrap();
        long.set_len(MOST as u64 + 1).unwrap();
        assert!(why(long, LATER).contains("more than the 16 MiB"));
    }
}
