//! Hash maps of small keys.

/// A hash map of small keys. Never iterated without sorting: its order has no meaning.
pub(crate) type QuickMap<K, V> = rustc_hash::FxHashMap<K, V>;
