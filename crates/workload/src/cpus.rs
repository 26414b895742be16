use crate::Error;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A set of logical CPUs, as the kernel numbers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// The CPUs on which the calling thread may run now.
    pub fn allowed() -> Result<Self, Error> {
        Self::of(None)
    }

    /// The CPUs on which a task may run now. Errors: it is gone.
    pub fn of_task(task: i32) -> Result<Self, Error> {
        let gone = || Error::system("read the CPU affinity", rustix::io::Errno::SRCH);
        Self::of(Some(rustix::process::Pid::from_raw(task).ok_or_else(gone)?))
    }

    fn of(task: Option<rustix::process::Pid>) -> Result<Self, Error> {
        let set = rustix::thread::sched_getaffinity(task).map_err(|e| Error::system("read the CPU affinity", e))?;
        Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
    }

    /// Whether a CPU is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn mask(&self) -> Result<rustix::thread::CpuSet, Error> {
        let mut mask = rustix::thread::CpuSet::new();
        for cpu in self.iter() {
            if cpu >= rustix::thread::CpuSet::MAX_CPU {
                return Err(Error::CpuList {
                    text: self.to_string(),
                    why: format!("CPU {cpu} is beyond the kernel's {}", rustix::thread::CpuSet::MAX_CPU),
                });
            }
            mask.set(cpu);
        }
        Ok(mask)
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        CpuSet(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = Error;

    /// Reads the kernel's list format: `0-3,6`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::CpuList { text: text.to_owned(), why };
        let number =
            |part: &str| part.trim().parse::<usize>().map_err(|_| wrong(format!("{part:?} is not a CPU number")));
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(wrong(format!("{first} is above {last}")));
            }
            if last >= rustix::thread::CpuSet::MAX_CPU {
                return Err(wrong(format!("CPU {last} is beyond what the kernel supports")));
            }
            cpus.extend(first..=last);
        }
        Ok(CpuSet(cpus))
    }
}

impl fmt::Display for CpuSet {
    /// Writes the kernel's list format.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<usize> = self.iter().collect();
        let runs = cpus.chunk_by(|a, b| a + 1 == *b);
        for (i, run) in runs.enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match run {
                [one] => write!(out, "{comma}{one}")?,
                [first, .., last] => write!(out, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        let set: CpuSet = "6,0-2,1".parse().unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 2, 6]);
        assert_eq!(set.to_string(), "0-2,6");
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused_in_words() {
        for (text, why) in [("3-1", "3 is above 1"), ("", "not a CPU number"), ("0-99999999999", "beyond")] {
            let message = text.parse::<CpuSet>().unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
        }
    }
}
