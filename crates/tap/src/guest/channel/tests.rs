use super::*;
use std::io::Write;
use std::net::Shutdown;
use std::time::Instant;

const SOON: Duration = Duration::from_millis(50);

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend_from_slice(payload);
    bytes
}

/// A channel on which these bytes came; the sender's end is given back, so that it stays open.
fn channel(bytes: &[u8]) -> (Channel, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(bytes).unwrap();
    (Channel { stream: ours, patience: SOON }, theirs)
}

fn broken(bytes: &[u8]) -> String {
    let (mut channel, theirs) = channel(bytes);
    theirs.shutdown(Shutdown::Write).unwrap();
    channel.next().unwrap_err().to_string()
}

#[test]
fn frames_are_distinguished_by_kind() {
    let sent = [frame(1, b"ready"), frame(2, b"0 A x\n"), frame(3, b""), frame(4, b"\0")].concat();
    let (mut channel, theirs) = channel(&sent);
    drop(theirs);
    assert_eq!(channel.next().unwrap(), Some(Frame::Text("ready".into())));
    assert_eq!(channel.next().unwrap(), Some(Frame::File(FileKind::Kallsyms, b"0 A x\n".into())));
    assert_eq!(channel.next().unwrap(), Some(Frame::File(FileKind::Btf, Vec::new())));
    assert_eq!(channel.next().unwrap(), Some(Frame::Tar(vec![0])));
    assert_eq!(channel.next().unwrap(), None);
}

#[test]
fn a_frame_is_as_long_as_its_kind_may_be() {
    assert_eq!(broken(&[0x01, 0x40, 0, 0, 1]), "a message of 16385 bytes, which its kind never has");
    for kind in 2..=4 {
        assert_eq!(broken(&[0x01, 0, 1, 0, kind]), "a message of 65537 bytes, which its kind never has");
    }
    assert_eq!(broken(&[0xff, 0xff, 0xff, 0xff, 1]), "a message of 4294967295 bytes, which its kind never has");
    assert_eq!(broken(&[1, 0, 0, 0, 0, 0]), "a message of no known kind (0)");
    assert_eq!(broken(&[1, 0, 0, 0, 5, 0]), "a message of no known kind (5)");
    let longest = frame(1, &[b'x'; LONGEST_LINE as usize]);
    assert!(matches!(channel(&longest).0.next(), Ok(Some(Frame::Text(text))) if text.len() == 16384));
}

#[test]
fn half_a_frame_is_not_waited_for_and_ends_with_a_text() {
    let whole = frame(1, b"ended status=0");
    for length in 1..whole.len() {
        assert_eq!(broken(&whole[..length]), "half a message, and then its end", "{length} bytes");
    }
    for length in [1, 4, 5, 6, whole.len() - 1] {
        let (mut channel, _open) = channel(&whole[..length]);
        let began = Instant::now();
        assert_eq!(channel.next().unwrap_err().to_string(), "half a message, and nothing more for 0.05 s");
        assert!(began.elapsed() >= SOON, "{length} bytes: given up at once");
    }
}

#[test]
fn a_frames_beginning_is_waited_for_however_long() {
    let (mut channel, mut theirs) = channel(b"");
    let sender = std::thread::spawn(move || {
        std::thread::sleep(SOON * 3);
        theirs.write_all(&frame(1, b"ready")).unwrap();
    });
    assert_eq!(channel.next().unwrap(), Some(Frame::Text("ready".into())));
    sender.join().unwrap();
}

#[test]
fn a_text_cannot_steer_a_terminal() {
    let (mut channel, _open) = channel(&frame(1, b"error what=\x1b[2J\xff\r\nno \xc2\x9b"));
    assert_eq!(channel.next().unwrap(), Some(Frame::Text("error what=�[2J���no �".into())));
}

/// A repeatable sequence of numbers (Marsaglia's xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// The agent's lines, changed in one to four places: each such stream ends, by its end or by one of our errors, and
/// gives frames within their bounds.
#[test]
fn three_thousand_mutants_end_within_their_bounds() {
    let lines = [
        "perf cpu=0 at=0x1000 pages=257",
        "quiet ms=50 settled=1",
        "ready",
        "begin pid=70",
        "ended status=0",
        "deleted /a",
        "exit status=0 terminal=0 output=5 error=0 oom=0 full=0",
    ];
    let mut whole: Vec<u8> = lines.iter().flat_map(|line| frame(1, line.as_bytes())).collect();
    whole.extend([frame(2, &[7; 700]), frame(3, b""), frame(4, &[0; 512])].concat());
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut ended, mut refused) = (0, 0);
    for _ in 0..3000 {
        let mut mutant = whole.clone();
        for _ in 0..=numbers.below(4) {
            // A mutant cut to a byte may have lost that byte too.
            let at = numbers.below(mutant.len().max(1));
            match numbers.below(4) {
                _ if mutant.is_empty() => mutant.push(0),
                0 => mutant[at] = numbers.below(256) as u8,
                1 => mutant.truncate(at.max(1)),
                2 => drop(mutant.remove(at)),
                _ => mutant.insert(at, numbers.below(256) as u8),
            }
        }
        let (mut channel, theirs) = channel(&mutant);
        drop(theirs);
        loop {
            match channel.next() {
                Ok(Some(Frame::Text(text))) => {
                    assert!(text.chars().count() <= LONGEST_LINE as usize);
                    crate::guest::messages::parse_line(&text);
                }
                Ok(Some(Frame::File(_, bytes) | Frame::Tar(bytes))) => assert!(bytes.len() <= LONGEST_BLOCK as usize),
                Ok(None) => break ended += 1,
                Err(why) => break refused += usize::from(!why.to_string().is_empty()),
            }
        }
    }
    assert_eq!(ended + refused, 3000);
    assert!(ended > 100 && refused > 1000, "{ended} ended, {refused} were refused");
}
