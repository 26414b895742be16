//! The few `PERF_RECORD_*` layouts of `perf_event_open(2)` that describe maps and processes.

/// Kernel event of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Process `pid` mapped memory.
    Map {
        /// Process.
        pid: u32,
        /// Mapping that was made.
        mapping: Mapping,
    },
    /// A task has a new name; with `exec`, its process runs a new program and its old maps are gone.
    Name {
        /// Process.
        pid: u32,
        /// Task.
        tid: u32,
        /// The process executed a new program.
        exec: bool,
        /// New name.
        name: String,
    },
    /// A task or, if `pid` differs from `parent`, a process was made.
    Fork {
        /// Process of the new task.
        pid: u32,
        /// Process of the new task's parent.
        parent: u32,
        /// The new task.
        tid: u32,
    },
    /// A task ended.
    Exit {
        /// Process of the task.
        pid: u32,
        /// The task.
        tid: u32,
    },
    /// The ring was full: this many events are not known.
    Lost(u64),
}

/// A mapping from an event of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Offset in the file of the first byte.
    pub file_offset: u64,
    /// May be executed.
    pub executable: bool,
    /// Path of the file, or `//anon`, `[heap]`, `[stack]`, `[vdso]`, ….
    pub path: String,
}

impl Mapping {
    /// Whether a file of the file system backs the mapping.
    pub fn is_file(&self) -> bool {
        self.path.starts_with('/')
            && !self.path.starts_with("//")
            && !self.path.starts_with("/dev/zero")
            && !self.path.starts_with("/memfd:")
            && !self.path.starts_with("/SYSV")
    }
}

/// Bytes that are no perf ring's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "perf ring: record of type {kind} has the size {size}, which its type cannot have; the maps after it are not known"
)]
pub struct MapsError {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// Size field of the record.
    pub size: u16,
}

const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const MMAP2: u32 = 10;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_MMAP_DATA: u16 = 1 << 13;
const PROT_EXEC: u32 = 4;
const HEADER: usize = 8;

/// Reads one ring's bytes as they come; records may be cut anywhere between two calls.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    /// Takes the next bytes and passes every event completed by them to `sink`. Holds back less than 64 KiB.
    ///
    /// Errors: a size that the record's type cannot have; the bytes held are dropped.
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(Event)) -> Result<(), MapsError> {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        let result = loop {
            let rest = &self.pending[at..];
            if rest.len() < HEADER {
                break Ok(());
            }
            let (kind, misc, size) = (u32_at(rest, 0), u16_at(rest, 4), u16_at(rest, 6));
            if usize::from(size) < HEADER {
                break Err(MapsError { kind, size });
            }
            if rest.len() < usize::from(size) {
                break Ok(());
            }
            match event(kind, misc, &rest[HEADER..usize::from(size)]) {
                Ok(Some(event)) => sink(event),
                Ok(None) => {}
                Err(()) => break Err(MapsError { kind, size }),
            }
            at += usize::from(size);
        };
        if result.is_ok() {
            self.pending.drain(..at);
        } else {
            self.pending.clear();
        }
        result
    }
}

/// Decodes a record. `Ok(None)`: a type of no interest. `Err`: too short for its type.
fn event(kind: u32, misc: u16, body: &[u8]) -> Result<Option<Event>, ()> {
    let need = |n: usize| if body.len() < n { Err(()) } else { Ok(()) };
    Ok(Some(match kind {
        MMAP | MMAP2 => {
            let name_at = if kind == MMAP { 32 } else { 64 };
            need(name_at)?;
            let start = u64_at(body, 8);
            let executable = if kind == MMAP { misc & MISC_MMAP_DATA == 0 } else { u32_at(body, 56) & PROT_EXEC != 0 };
            Event::Map {
                pid: u32_at(body, 0),
                mapping: Mapping {
                    start,
                    end: start.saturating_add(u64_at(body, 16)),
                    file_offset: u64_at(body, 24),
                    executable,
                    path: text(&body[name_at..]),
                },
            }
        }
        COMM => {
            need(8)?;
            Event::Name {
                pid: u32_at(body, 0),
                tid: u32_at(body, 4),
                exec: misc & MISC_COMM_EXEC != 0,
                name: text(&body[8..]),
            }
        }
        FORK => {
            need(16)?;
            Event::Fork { pid: u32_at(body, 0), parent: u32_at(body, 4), tid: u32_at(body, 8) }
        }
        EXIT => {
            need(16)?;
            Event::Exit { pid: u32_at(body, 0), tid: u32_at(body, 8) }
        }
        LOST => {
            need(16)?;
            Event::Lost(u64_at(body, 8))
        }
        _ => return Ok(None),
    }))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytemuck::pod_read_unaligned(&bytes[at..at + 4])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytemuck::pod_read_unaligned(&bytes[at..at + 8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut out = kind.to_le_bytes().to_vec();
        out.extend_from_slice(&misc.to_le_bytes());
        out.extend_from_slice(&((HEADER + body.len()) as u16).to_le_bytes());
        out.extend_from_slice(body);
        out
    }

    fn mmap2(pid: u32, start: u64, length: u64, offset: u64, prot: u32, path: &str) -> Vec<u8> {
        let mut body = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
        for v in [start, length, offset, 0, 0, 0] {
            body.extend_from_slice(&v.to_le_bytes());
        }
        body.extend_from_slice(&prot.to_le_bytes());
        body.extend_from_slice(&2u32.to_le_bytes());
        body.extend_from_slice(path.as_bytes());
        body.resize(body.len().next_multiple_of(8) + 8, 0);
        record(MMAP2, 2, &body)
    }

    fn stream() -> (Vec<u8>, Vec<Event>) {
        let mut bytes = mmap2(7, 0x1000, 0x2000, 0x3000, 5, "/usr/bin/sort");
        bytes.extend(record(9, 0, &[1; 24]));
        bytes.extend(record(COMM, MISC_COMM_EXEC, b"\x07\0\0\0\x08\0\0\0sort\0\0\0\0"));
        let mut four = Vec::new();
        for v in [9u32, 7, 10, 7, 0, 0] {
            four.extend_from_slice(&v.to_le_bytes());
        }
        bytes.extend(record(FORK, 0, &four));
        bytes.extend(record(EXIT, 0, &four));
        let events = vec![
            Event::Map {
                pid: 7,
                mapping: Mapping {
                    start: 0x1000,
                    end: 0x3000,
                    file_offset: 0x3000,
                    executable: true,
                    path: "/usr/bin/sort".into(),
                },
            },
            Event::Name { pid: 7, tid: 8, exec: true, name: "sort".into() },
            Event::Fork { pid: 9, parent: 7, tid: 10 },
            Event::Exit { pid: 9, tid: 10 },
        ];
        (bytes, events)
    }

    proptest! {
        #[test]
        fn records_may_be_cut_anywhere(cuts in proptest::collection::vec(1usize..40, 0..20)) {
            let (bytes, events) = stream();
            let (mut decoder, mut seen, mut rest) = (Decoder::default(), Vec::new(), &bytes[..]);
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                decoder.feed(head, |e| seen.push(e)).unwrap();
                rest = tail;
            }
            decoder.feed(rest, |e| seen.push(e)).unwrap();
            prop_assert_eq!(seen, events);
        }

        #[test]
        fn hostile_bytes_are_an_error_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut decoder = Decoder::default();
            let _ = decoder.feed(&bytes, |_| {});
            prop_assert!(decoder.pending.len() <= 400);
        }
    }

    #[test]
    fn a_record_too_short_for_its_type_is_named() {
        let error = Decoder::default().feed(&record(MMAP2, 0, &[0; 16]), |_| {}).unwrap_err();
        assert_eq!(error, MapsError { kind: MMAP2, size: 24 });
    }

    #[test]
    fn only_files_are_files() {
        let file =
            |path: &str| Mapping { start: 0, end: 1, file_offset: 0, executable: false, path: path.into() }.is_file();
        assert!(file("/usr/lib/libc.so.6"));
        assert!(!file("//anon") && !file("[stack]") && !file("/memfd:x (deleted)") && !file("/dev/zero (deleted)"));
    }
}
