//! The store: bounded by bytes, shared by all threads.

use super::body::Arena;
use super::entry::Entry;
use super::flow::Flow;
use super::forgotten::Forgotten;
use super::key::{Key, KeyRef};
use crate::lock::lock;
use nearmiss_cache_policy::{RequestHead, vary_key};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Most variants of one key.
const VARIANTS_MOST: usize = 32;
/// How many keys are remembered as not to be stored.
const PASSED_MOST: usize = 16_384;

/// All variants under one key, the newest last.
#[derive(Clone, Debug)]
pub struct Resource {
    variants: Vec<Arc<Entry>>,
}

impl Resource {
    /// The only variant, where the response does not vary.
    pub fn plain(&self) -> Option<&Arc<Entry>> {
        self.variants.last().filter(|entry| !entry.varies)
    }

    /// The newest variant that this request selects.
    pub fn select(&self, request: &RequestHead<'_>) -> Option<&Arc<Entry>> {
        self.variants.iter().rev().find(|entry| vary_key(&entry.fields, request).as_ref() == Some(&entry.variant))
    }

    fn with(&self, entry: Arc<Entry>) -> Self {
        let kept = self.variants.iter().filter(|other| other.variant != entry.variant);
        let mut variants: Vec<_> = kept.cloned().collect();
        if variants.len() >= VARIANTS_MOST {
            variants.remove(0);
        }
        variants.push(entry);
        Resource { variants }
    }
}

#[derive(Clone, Debug)]
struct BySize;

impl Weighter<Key, Arc<Resource>> for BySize {
    fn weight(&self, key: &Key, resource: &Arc<Resource>) -> u64 {
        let entries: usize = resource.variants.iter().map(|entry| entry.size()).sum();
        (key.size() + entries + 128) as u64
    }
}

/// Responses stored, responses under way, and keys not to be stored.
#[derive(Debug)]
pub struct Store {
    cache: Cache<Key, Arc<Resource>, BySize>,
    /// Memory of long bodies.
    pub arena: Arc<Arena>,
    passed: Cache<Key, u64>,
    under_way: Mutex<HashMap<Key, Arc<Flow>>>,
    changing: Mutex<Forgotten>,
}

impl Store {
    /// A store of so many bytes, in which bodies up to `longest` have room.
    pub fn new(bytes: u64, longest: u64) -> std::io::Result<Self> {
        let items = (bytes / 8192).clamp(1024, 1 << 24) as usize;
        // Each shard has its part of the bytes, and nothing larger than a shard is kept.
        let shards = (bytes / (4 * longest.max(1))).clamp(1, 64) as usize;
        let options = OptionsBuilder::new()
            .estimated_items_capacity(items)
            .weight_capacity(bytes)
            .shards(shards.next_power_of_two().min(64))
            .build()
            .map_err(std::io::Error::other)?;
        let (hasher, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Ok(Store {
            cache: Cache::with_options(options, BySize, hasher, lifecycle),
            arena: Arena::new()?,
            passed: Cache::new(PASSED_MOST),
            under_way: Mutex::default(),
            changing: Mutex::default(),
        })
    }

    /// The variants of a key.
    pub fn get(&self, key: &KeyRef<'_>) -> Option<Arc<Resource>> {
        self.cache.get(key)
    }

    /// Returns how much was forgotten so far: the turn that a fetch that begins now has to show when it stores.
    pub fn turn(&self) -> u64 {
        lock(&self.changing).turn()
    }

    /// Stores a variant in place of the one before. False, and nothing is stored, where the key was forgotten since
    /// that turn: the response may be older than what made the stored one invalid.
    pub fn insert(&self, key: &Key, entry: Arc<Entry>, since: u64) -> bool {
        let forgotten = lock(&self.changing);
        if forgotten.has(key, since) {
            return false;
        }
        let resource = match self.cache.peek(key) {
            Some(resource) => resource.with(entry),
            None => Resource { variants: vec![entry] },
        };
        self.cache.insert(key.clone(), Arc::new(resource));
        self.passed.remove(key);
        true
    }

    /// Forgets a key: what is stored, and what is under way for later requests. Whether something was stored.
    pub fn forget(&self, key: &Key) -> bool {
        let mut forgotten = lock(&self.changing);
        forgotten.add(key);
        lock(&self.under_way).remove(key);
        self.cache.remove(key).is_some()
    }

    /// Forgets all keys with an authority and target that are to go. Returns how many were stored.
    pub fn forget_where(&self, goes: impl Fn(&KeyRef<'_>) -> bool) -> usize {
        let mut forgotten = lock(&self.changing);
        forgotten.add_all();
        lock(&self.under_way).retain(|key, _| !goes(&key.parts()));
        let keys: Vec<Key> = self.cache.iter().map(|(key, _)| key).filter(|key| goes(&key.parts())).collect();
        keys.iter().filter(|key| self.cache.remove(*key).is_some()).count()
    }

    /// Keys, bytes, and the most bytes.
    pub fn filled(&self) -> (u64, u64, u64) {
        (self.cache.len() as u64, self.cache.weight(), self.cache.capacity())
    }

    /// The fill under way for a key, or a new one under the key: then true.
    pub fn join(&self, key: &Key, new: impl FnOnce() -> Arc<Flow>) -> (Arc<Flow>, bool) {
        let mut under_way = lock(&self.under_way);
        if let Some(flow) = under_way.get(key) {
            return (Arc::clone(flow), false);
        }
        let flow = new();
        under_way.insert(key.clone(), Arc::clone(&flow));
        (flow, true)
    }

    /// Takes a fill off the list, if it is the one listed.
    pub fn leave(&self, key: &Key, flow: &Arc<Flow>) {
        let mut under_way = lock(&self.under_way);
        if under_way.get(key).is_some_and(|listed| Arc::ptr_eq(listed, flow)) {
            under_way.remove(key);
        }
    }

    /// Remembers until `until` that responses under this key are not stored.
    pub fn pass(&self, key: Key, until: u64) {
        self.passed.insert(key, until);
    }

    /// Returns whether responses under this key were not to be stored lately.
    pub fn passes(&self, key: &Key, now: u64) -> bool {
        self.passed.get(key).is_some_and(|until| now < until)
    }
}
