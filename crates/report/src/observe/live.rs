//! The terminal view's lines.

use super::hot::{Hot, event_of, hottest, total};
use super::words::{cut, lock_name, of_processes, short, time};
use crate::function_name::folded;
use crate::name::plain;
use crate::number::{bytes, grouped, percent_of};
use nearmiss_record::observed::{Observed, Profile};

/// Lines of one refresh, with whether each is a title: they fill, and never exceed, so many columns and rows.
pub fn top_lines(o: &Observed, width: usize, rows: usize) -> Vec<(bool, String)> {
    let mut lines: Vec<(bool, String)> = vec![(true, head(o))];
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    if let Some(profile) = &o.profile {
        for (role, title) in [("clock", "time"), ("misses", "misses")] {
            if let Some(event) = event_of(profile, role) {
                sections.push(functions(profile, event, title, width));
            }
        }
    }
    sections.push(locks(o));
    sections.push(polls(o));
    sections.push(block(o));
    let room = rows.saturating_sub(sections.len() + 1);
    let mut shares: Vec<usize> =
        sections.iter().map(|(_, body)| body.len().min(room / sections.len().max(1))).collect();
    let mut spare = room - shares.iter().sum::<usize>();
    for (share, (_, body)) in shares.iter_mut().zip(&sections) {
        let more = spare.min(body.len() - *share);
        *share += more;
        spare -= more;
    }
    for ((title, body), share) in sections.into_iter().zip(shares) {
        lines.push((true, title));
        lines.extend(body.into_iter().take(share).map(|line| (false, line)));
    }
    lines.truncate(rows);
    lines.into_iter().map(|(title, line)| (title, cut(&plain(&line), width))).collect()
}

fn head(o: &Observed) -> String {
    format!("nearmiss observe  {}  last {}", o.target, time(o.duration_ns))
}

fn functions(profile: &Profile, event: u32, title: &str, width: usize) -> (String, Vec<String>) {
    let (samples, _) = total(profile, event);
    let name_width = width.saturating_sub(28);
    let row = |h: &Hot| {
        format!(
            "{:>6}  {:<name_width$}  {}",
            percent_of(h.samples, samples),
            cut(&folded(&h.name), name_width),
            short(&h.module)
        )
    };
    let rows = hottest(profile, event).iter().filter(|h| h.samples > 0).map(row).collect();
    (format!("Functions by {title} ({} samples)", grouped(samples)), rows)
}

fn locks(o: &Observed) -> (String, Vec<String>) {
    let processes = of_processes(&o.locks);
    let contended: Vec<_> = o.locks.iter().filter(|l| l.contended).collect();
    let total: u64 = contended.iter().map(|l| l.total_ns).sum();
    let rows = contended.iter().map(|l| {
        let caller = l.call_sites.first().map(|(f, _)| f).or_else(|| l.stack.first());
        let caller = caller.map_or("", |f| f.function.as_str());
        format!(
            "{:>8} {:>7} waits {:>8} each  {} {caller}",
            time(l.total_ns),
            grouped(l.count),
            time(l.total_ns / l.count.max(1)),
            lock_name(l, processes)
        )
    });
    (format!("Lock waits: {} in all", time(total)), rows.collect())
}

fn polls(o: &Observed) -> (String, Vec<String>) {
    let calls: u64 = o.polls.iter().map(|p| p.calls).sum();
    let events: u64 = o.polls.iter().map(|p| p.events).sum();
    let rows = o.polls.iter().map(|p| {
        format!(
            "{:>8} calls {:>6.2} events each {:>6} empty {:>8} on CPU  {} {} {}",
            grouped(p.calls),
            p.events as f64 / p.calls.max(1) as f64,
            percent_of(p.empty, p.calls),
            time(p.on_cpu_ns / p.calls.max(1)),
            p.call,
            p.name,
            p.thread
        )
    });
    let a_call = events as f64 / calls.max(1) as f64;
    (format!("Polls: {} calls, {a_call:.2} events a call", grouped(calls)), rows.collect())
}

fn block(o: &Observed) -> (String, Vec<String>) {
    let queues = o.queues.iter().map(|q| {
        format!(
            "{:<10} busy {:>6}  mean queue {:.2}",
            q.device,
            percent_of(q.busy_ns, o.duration_ns),
            q.weighted_ns as f64 / o.duration_ns.max(1) as f64
        )
    });
    let requests = o.io.iter().map(|i| {
        format!(
            "{:<10} {:>7} {:<6} {:>9} {:>8} each  {} {}",
            i.device,
            grouped(i.count),
            i.operation,
            bytes(i.bytes),
            time((i.queue_ns + i.device_ns) / i.count.max(1)),
            i.name,
            i.process
        )
    });
    let count: u64 = o.io.iter().map(|i| i.count).sum();
    (format!("Block I/O: {} requests", grouped(count)), queues.chain(requests).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::observed::{Lock, Poll};

    #[test]
    fn the_view_fits_80_by_24() {
        let lock = Lock {
            kind: "mutex".into(),
            contended: true,
            name: "x".repeat(90),
            count: 3,
            total_ns: 3_000,
            ..Lock::default()
        };
        let poll = Poll { call: "epoll_wait".into(), name: "server\u{1b}[31m".into(), calls: 10, ..Poll::default() };
        let o = Observed { locks: vec![lock; 40], polls: vec![poll; 40], ..Observed::default() };
        let lines = top_lines(&o, 80, 23);
        assert_eq!(lines.len(), 23, "the room is used");
        assert!(lines.iter().all(|(_, l)| l.chars().count() <= 80));
        assert!(lines.iter().all(|(_, l)| !l.contains('\u{1b}')), "names cannot steer the terminal");
        assert!(top_lines(&o, 80, 4).len() <= 4);
    }
}
