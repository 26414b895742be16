//! The names of the directives that this cache obeys, in a form that compares without case and without the heap.

/// The length of the longest name: stale-while-revalidate.
const LONGEST: usize = 22;

/// A name in lower case, followed by zeros.
pub(crate) type Name = [u8; LONGEST];

/// The padded form of a name; all zeros for a name that is longer than any that is known.
pub(crate) const fn padded(text: &[u8]) -> Name {
    let mut name = [0; LONGEST];
    let mut at = 0;
    while text.len() <= LONGEST && at < text.len() {
        name[at] = text[at].to_ascii_lowercase();
        at += 1;
    }
    name
}

pub(crate) const MAX_AGE: Name = padded(b"max-age");
pub(crate) const S_MAXAGE: Name = padded(b"s-maxage");
pub(crate) const MAX_STALE: Name = padded(b"max-stale");
pub(crate) const MIN_FRESH: Name = padded(b"min-fresh");
pub(crate) const MUST_REVALIDATE: Name = padded(b"must-revalidate");
pub(crate) const MUST_UNDERSTAND: Name = padded(b"must-understand");
pub(crate) const NO_CACHE: Name = padded(b"no-cache");
pub(crate) const NO_STORE: Name = padded(b"no-store");
pub(crate) const ONLY_IF_CACHED: Name = padded(b"only-if-cached");
pub(crate) const PRIVATE: Name = padded(b"private");
pub(crate) const PROXY_REVALIDATE: Name = padded(b"proxy-revalidate");
pub(crate) const PUBLIC: Name = padded(b"public");
pub(crate) const STALE_IF_ERROR: Name = padded(b"stale-if-error");
pub(crate) const STALE_WHILE_REVALIDATE: Name = padded(b"stale-while-revalidate");
