//! Facts on tasks from `/proc`, read without allocating: the guardian reads them after a fork.

const PAGE: usize = 4096;

/// A path with numbers in it, made without allocating.
pub(crate) struct Path {
    bytes: [u8; 64],
}

impl Path {
    /// Parts, with a number between each two; the whole is shorter than the array for numbers of ten digits.
    pub(crate) fn of(parts: &[&[u8]], numbers: &[i32]) -> Self {
        let mut path = Path { bytes: [0; 64] };
        let mut at = 0;
        let mut put = |byte: u8| {
            if at < 63 {
                path.bytes[at] = byte;
                at += 1;
            }
        };
        for (index, part) in parts.iter().enumerate() {
            part.iter().for_each(|byte| put(*byte));
            let Some(number) = numbers.get(index) else { continue };
            let power = (0..9).rev().map(|digits| 10i32.pow(digits));
            power.skip_while(|p| *number < *p && *p > 1).for_each(|p| put(b'0' + (number / p % 10) as u8));
        }
        path
    }

    fn open(&self) -> Option<i32> {
        // SAFETY: the last byte is never written, so the path ends with a NUL.
        let file = unsafe { libc::open(self.bytes.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
        (file >= 0).then_some(file)
    }
}

fn number(digits: &[u8]) -> Option<i32> {
    let digit = |value: i32, byte: &u8| {
        byte.is_ascii_digit().then(|| value.checked_mul(10)?.checked_add(i32::from(byte - b'0'))).flatten()
    };
    (!digits.is_empty()).then(|| digits.iter().try_fold(0, digit)).flatten()
}

/// Entries of a directory that are numbers.
pub(crate) fn each_number_in_directory(path: &Path, mut each: impl FnMut(i32)) {
    /// Bytes ahead of an entry's name (`linux_dirent64`), and where its length is.
    const NAME: usize = 19;
    const LENGTH: usize = 16;
    let Some(directory) = path.open() else { return };
    let mut buffer = [0u8; PAGE];
    loop {
        // SAFETY: the kernel writes at most as many bytes as given.
        let got = unsafe { libc::syscall(libc::SYS_getdents64, directory, buffer.as_mut_ptr(), buffer.len()) };
        let Some(mut rest) = usize::try_from(got).ok().and_then(|got| buffer.get(..got)) else { break };
        if rest.is_empty() {
            break;
        }
        while rest.len() > NAME {
            let length = usize::from(u16::from_ne_bytes([rest[LENGTH], rest[LENGTH + 1]]));
            let Some(entry) = rest.get(NAME..length) else { break };
            let name = entry.split(|byte| *byte == 0).next().unwrap_or_default();
            number(name).into_iter().for_each(&mut each);
            rest = &rest[length..];
        }
    }
    // SAFETY: a descriptor of our own.
    unsafe { libc::close(directory) };
}

/// Numbers in a file's first page.
pub(crate) fn each_number_in_file(path: &Path, each: impl FnMut(i32)) {
    let mut buffer = [0; PAGE];
    read(path, &mut buffer).split(u8::is_ascii_whitespace).filter_map(number).for_each(each);
}

/// When a task of a process began, in clock ticks since the machine's start; none where it is gone.
pub(crate) fn began(process: i32, task: i32) -> Option<u64> {
    /// Field of the task's `stat`, counted from behind the name, which may hold anything. The `stat` of a process would
    /// add up all of its threads.
    const BEGAN: usize = 19;
    let mut buffer = [0; PAGE];
    let stat = read(&Path::of(&[b"/proc/", b"/task/", b"/stat"], &[process, task]), &mut buffer);
    let behind_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let word = stat.get(behind_name..)?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(BEGAN)?;
    let digit = |value: u64, byte: &u8| value.checked_mul(10)?.checked_add(u64::from(byte.checked_sub(b'0')?));
    word.iter().try_fold(0, digit)
}

/// The first page of a file; nothing where it cannot be read.
fn read<'a>(path: &Path, buffer: &'a mut [u8; PAGE]) -> &'a [u8] {
    let Some(file) = path.open() else { return &[] };
    // SAFETY: the kernel writes at most as many bytes as given; the descriptor is our own.
    let got = unsafe {
        let got = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(file);
        got
    };
    buffer.get(..usize::try_from(got).unwrap_or(0)).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_numbers_need_no_allocation() {
        let path = |numbers: &[i32]| Path::of(&[b"/proc/", b"/task/", b"/children"], numbers).bytes;
        assert!(path(&[1, 4_194_304]).starts_with(b"/proc/1/task/4194304/children\0"));
        assert!(path(&[70, 100]).starts_with(b"/proc/70/task/100/children\0"));
        assert_eq!(
            [number(b"0"), number(b"4194304"), number(b""), number(b"."), number(b"99999999999")],
            [Some(0), Some(4_194_304), None, None, None]
        );
    }

    #[test]
    fn a_task_began_once_and_one_that_is_gone_never() {
        let own = std::process::id() as i32;
        assert!(began(own, own).is_some_and(|ticks| ticks > 0 && Some(ticks) == began(own, own)));
        let text = std::fs::read_to_string(format!("/proc/{own}/stat")).unwrap();
        let words: Vec<&str> = text[text.rfind(')').unwrap() + 2..].split(' ').collect();
        assert_eq!(began(own, own), words[19].parse().ok());
        assert_eq!((began(own, i32::MAX), began(1, own)), (None, None));
    }

    #[test]
    fn the_threads_of_this_process_are_listed() {
        let (mut seen, own) = (Vec::new(), std::process::id() as i32);
        each_number_in_directory(&Path::of(&[b"/proc/", b"/task"], &[own]), |task| seen.push(task));
        assert!(seen.contains(&own) && seen.len() >= 2, "{seen:?}");
    }
}
