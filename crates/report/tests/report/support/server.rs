//! Two observations of a server, made by hand: a lock that is waited for, and the same server without it.

use nearmiss_record::observed::*;
use nearmiss_record::run::Manifest;

/// Differences between the two.
struct Server {
    module: &'static str,
    /// Samples in `serve`, in `spin`, and without a stack.
    samples: [u64; 3],
    lock_ns: u64,
    empty_polls: u64,
    device_ns: u64,
    duration_ns: u64,
}

/// Makes the server with the lock.
pub fn locked() -> (Manifest, Observed) {
    server(&Server {
        module: "/srv/server-1",
        samples: [300, 190, 10],
        lock_ns: 400_000_000,
        empty_polls: 900,
        device_ns: 20_000_000,
        duration_ns: 2_000_000_000,
    })
}

/// Makes the server without the lock.
pub fn lock_free() -> (Manifest, Observed) {
    let (mut manifest, mut observed) = server(&Server {
        module: "/srv/server-2",
        samples: [310, 0, 10],
        lock_ns: 0,
        empty_polls: 1_000,
        device_ns: 20_000_000,
        duration_ns: 1_500_000_000,
    });
    manifest.started = "2026-01-01T00:10:00Z".into();
    observed.locks.clear();
    observed.instruments.retain(|i| i.name != "sched");
    (manifest, observed)
}

fn server(of: &Server) -> (Manifest, Observed) {
    let manifest = Manifest {
        schema: "nearmiss/manifest/1".into(),
        nearmiss: "0.1.0".into(),
        command: vec![of.module.into()],
        cwd: "/srv".into(),
        started: "2026-01-01T00:00:00Z".into(),
        recorder: "observe".into(),
        machine: "host".into(),
        cpus: 2,
        exit_status: Some(0),
        window_ns: of.duration_ns,
        ..Manifest::default()
    };
    let on = |name: &str| Instrument { name: name.into(), on: true, how: "by the kernel".into(), ..Default::default() };
    let observed = Observed {
        schema: SCHEMA.into(),
        target: of.module.into(),
        duration_ns: of.duration_ns,
        cpus: 2,
        cpu_ns: of.samples.iter().sum::<u64>() * 2_000_000,
        instruments: ["clock", "locks", "polls", "io", "sched"].map(on).to_vec(),
        profile: Some(profile(of)),
        locks: vec![lock(of)],
        polls: vec![Poll {
            call: "epoll_wait".into(),
            name: "worker".into(),
            thread: 7,
            calls: 2_000,
            empty: of.empty_polls,
            on_cpu_ns: 3_000_000 + of.empty_polls * 1_000,
            blocked_ns: 50_000_000,
            ..Poll::default()
        }],
        io: vec![BlockIo {
            device: "vda".into(),
            operation: "read".into(),
            name: "worker".into(),
            count: 40,
            bytes: 40 << 12,
            device_ns: of.device_ns,
            ..BlockIo::default()
        }],
        ..Observed::default()
    };
    (manifest, observed)
}

fn frame(function: &str, module: &str) -> Frame {
    Frame { function: function.into(), module: module.into(), ..Frame::default() }
}

fn profile(of: &Server) -> Profile {
    let sample = |stack| Sample { stack, weight: 2_000_000, ..Sample::default() };
    Profile {
        events: vec![Event { name: "cpu-clock".into(), role: "clock".into(), frequency_hz: 499, ..Event::default() }],
        frames: vec![frame("serve", of.module), frame("spin", of.module)],
        stacks: vec![vec![0], vec![1, 0], vec![]],
        threads: vec![(1, 7, "worker".into())],
        samples: (0..).zip(of.samples).flat_map(|(stack, n)| (0..n).map(move |_| sample(stack))).collect(),
    }
}

fn lock(of: &Server) -> Lock {
    Lock {
        kind: "futex".into(),
        name: "mutex".into(),
        address: 0x7f00_0000_1000,
        contended: true,
        process: Some(1),
        call_sites: vec![(frame("enqueue", of.module), 64)],
        count: 800,
        total_ns: of.lock_ns,
        min_ns: 10_000,
        max_ns: 5_000_000,
        ..Lock::default()
    }
}
