//! Words that the user adds to the guest kernel's command line.

use std::fmt;
use std::str::FromStr;

use super::error::GuestError;

/// One word for the guest's kernel, such as `init_on_alloc=0` or `maxcpus=1`. It comes behind nearmiss's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelArgument(String);

/// Without these as nearmiss sets them, no guest becomes ready, or what is recorded gets wrong names.
const NEARMISS_S_OWN: [&str; 10] =
    ["console", "init", "initrd", "kaslr", "nokaslr", "norandmaps", "oops", "panic", "rdinit", "root"];
/// The kernel cuts its command line at 2,048 bytes; nearmiss's own words take some 250 of them.
const LONGEST: usize = 1024;

impl FromStr for KernelArgument {
    type Err = GuestError;

    /// Errors: it is no single word, or one that belongs to nearmiss.
    fn from_str(text: &str) -> Result<Self, GuestError> {
        let refused = |why: &str| Err(GuestError::Config(format!("kernel argument {text:?}: {why}")));
        if text.is_empty() || !text.chars().all(|c| c.is_ascii_graphic()) {
            return refused("must be one word of printable ASCII, such as init_on_alloc=0; give several one by one");
        }
        let name = text.split('=').next().unwrap_or_default();
        if text == "--" || name.starts_with('"') || NEARMISS_S_OWN.contains(&name) {
            return refused("is nearmiss's own: the guest would not become ready, or its names would be wrong");
        }
        Ok(KernelArgument(text.to_owned()))
    }
}

impl fmt::Display for KernelArgument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Errors: the words are more than a kernel's command line has room for.
pub(super) fn check_length(arguments: &[KernelArgument]) -> Result<(), GuestError> {
    let length: usize = arguments.iter().map(|argument| argument.0.len() + 1).sum();
    match length <= LONGEST {
        true => Ok(()),
        false => Err(GuestError::Config(format!("kernel arguments: {length} bytes, of at most {LONGEST}; give fewer"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_word_that_is_not_nearmiss_s_own_is_taken() {
        for sound in ["init_on_alloc=0", "maxcpus=1", "quiet", "numa_balancing=enable", "dyndbg=\"file,x\""] {
            assert_eq!(sound.parse::<KernelArgument>().unwrap().to_string(), sound);
        }
        for wrong in ["", "a b", "a\n", "grün=1", "--", "\"a", "rdinit=/bin/sh", "panic=5", "kaslr", "console=tty0"] {
            assert!(wrong.parse::<KernelArgument>().unwrap_err().to_string().starts_with("kernel argument"), "{wrong}");
        }
    }

    #[test]
    fn more_words_than_the_kernel_reads_are_refused() {
        let word: KernelArgument = "x".repeat(511).parse().unwrap();
        assert!(check_length(&[word.clone(), word.clone()]).is_ok());
        assert!(
            check_length(&[word.clone(), word, "y".parse().unwrap()]).unwrap_err().to_string().contains("1026 bytes")
        );
    }
}
