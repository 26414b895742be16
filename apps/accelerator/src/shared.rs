//! State shared by all threads.

use crate::cache::flow::Waker;
use crate::cache::store::Store;
use crate::config::Config;
use crate::lock::lock;
use crate::metrics::Counters;
use crate::origins::Origins;
use http::HeaderName;
use nearmiss_cache_policy::{Handled, Options, cache_status};
use rustix::event::{EventfdFlags, eventfd};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// State that a reload changes as a whole.
#[derive(Debug)]
pub struct Live {
    /// The configuration.
    pub config: Config,
    /// Options of the caching policy.
    pub policy: Options,
    /// The servers behind.
    pub origins: Origins,
    /// The fields that a hit bears beside those stored.
    pub hit_marks: String,
    /// The access log.
    pub log: Option<File>,
}

impl Live {
    /// Prepares a configuration: opens its access log, finds its origins.
    pub fn new(config: Config, before: Option<&Live>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let log = config.access_log.as_ref().map(open).transpose()?;
        let name = &config.cache.name;
        let hit = cache_status(name, &Handled::default());
        let hit_marks = format!("via: 1.1 {name}\r\ncache-status: {}\r\n", hit.to_str().unwrap_or_default());
        let mut policy = Options::default();
        let own = HeaderName::from_bytes(format!("{name}-cache-control").as_bytes());
        policy.targeted.splice(0..0, own.ok());
        let origins = Origins::new(&config.origins, before.map(|live| &live.origins));
        Ok(Live { config, policy, origins, hit_marks, log })
    }
}

/// Connections of a thread that are to look again.
#[derive(Debug)]
pub struct Mailbox {
    tokens: Mutex<Vec<u64>>,
    filled: AtomicBool,
    /// Readable once another thread left something.
    pub bell: OwnedFd,
}

impl Mailbox {
    fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Mailbox { tokens: Mutex::default(), filled: AtomicBool::new(false), bell })
    }

    /// Rings the bell.
    pub fn ring(&self) {
        // It fails only where the bell rings already.
        let _rings = rustix::io::write(&self.bell, &1u64.to_ne_bytes()).is_err();
    }

    /// Takes what is there.
    pub fn take(&self, into: &mut Vec<u64>) {
        if self.filled.swap(false, Ordering::AcqRel) {
            into.append(&mut lock(&self.tokens));
        }
    }

    /// Returns whether something is there.
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }
}

/// State shared by all threads.
#[derive(Debug)]
pub struct Shared {
    /// The store.
    pub store: Store,
    /// One a thread.
    pub mail: Vec<Mailbox>,
    /// One a thread.
    pub counters: Vec<Counters>,
    /// Clients' connections now.
    pub connections: AtomicUsize,
    /// No new connections, and the open ones end.
    pub draining: AtomicBool,
    /// Which configuration is the newest.
    pub generation: AtomicU64,
    live: Mutex<Arc<Live>>,
}

impl Shared {
    /// For so many threads.
    pub fn new(live: Live, threads: usize) -> io::Result<Self> {
        Ok(Shared {
            store: Store::new(live.config.cache.memory, live.config.cache.object)?,
            mail: (0..threads).map(|_| Mailbox::new()).collect::<io::Result<_>>()?,
            counters: (0..threads).map(|_| Counters::default()).collect(),
            connections: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            live: Mutex::new(Arc::new(live)),
        })
    }

    /// The newest configuration.
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&lock(&self.live))
    }

    /// Puts a configuration in place.
    pub fn reload(&self, live: Live) {
        *lock(&self.live) = Arc::new(live);
        self.generation.fetch_add(1, Ordering::Release);
        self.mail.iter().for_each(Mailbox::ring);
    }

    /// Signals all threads to end.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.mail.iter().for_each(Mailbox::ring);
    }

    /// Lets a connection look again. A thread's own mailbox needs no bell: the thread looks before it waits.
    pub fn wake(&self, from: usize, waker: Waker) {
        let mailbox = &self.mail[waker.worker];
        lock(&mailbox.tokens).push(waker.token);
        if !mailbox.filled.swap(true, Ordering::AcqRel) && from != waker.worker {
            mailbox.ring();
        }
    }
}
