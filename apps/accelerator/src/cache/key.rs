//! The key of a stored response: authority and target.

use equivalent::Equivalent;
use std::hash::{Hash, Hasher};

/// An owned key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Authority and target, one after the other.
    text: Box<str>,
    authority_len: u32,
}

/// A key where it lies in a request.
#[derive(Clone, Copy, Debug)]
pub struct KeyRef<'a> {
    /// In lower case, without the default port.
    pub authority: &'a str,
    /// In origin form.
    pub target: &'a str,
}

impl Key {
    /// Copies authority (brought into lower case) and target.
    pub fn new(authority: &str, target: &str) -> Self {
        let mut text = authority.to_ascii_lowercase();
        text.push_str(target);
        Key { text: text.into_boxed_str(), authority_len: authority.len() as u32 }
    }

    /// The key's parts.
    pub fn parts(&self) -> KeyRef<'_> {
        let (authority, target) = self.text.split_at(self.authority_len as usize);
        KeyRef { authority, target }
    }

    /// Returns the bytes of the key.
    pub fn size(&self) -> usize {
        self.text.len()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.parts().hash(hasher);
    }
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write(self.authority.as_bytes());
        hasher.write(self.target.as_bytes());
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        let parts = key.parts();
        self.target == parts.target && self.authority == parts.authority
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn a_borrowed_key_finds_the_owned_one() {
        let (key, other) = (Key::new("Host:81", "/a?b"), Key::new("host:8", "1/a?b"));
        let borrowed = KeyRef { authority: "host:81", target: "/a?b" };
        let state = std::hash::RandomState::new();
        assert_eq!(state.hash_one(&key), state.hash_one(borrowed));
        assert!(borrowed.equivalent(&key) && !borrowed.equivalent(&other));
    }
}
