//! The page of text.

use super::hot::{Hot, call_sites, event_of, hottest, lines, ratios, total};
use super::words::{cut, lacks, lock_name, of_processes, place, quantile, rate, short, time, waited};
use crate::function_name::{folded, of_table};
use crate::number::{bytes, fixed_percent, grouped, percent_of};
use nearmiss_record::observed::{LEAST_CLASSIFIED_NS, Lock, MemoryUse, Observed, Poll, Profile, Task};
use std::fmt::Write;

/// Kernel functions that copy to or from user memory; the report lists their callers.
const COPIES: [&str; 12] = [
    "rep_movs_alternative",
    "copy_user_generic",
    "copy_user_enhanced_fast_string",
    "__copy_user_nocache",
    "_copy_from_iter",
    "_copy_to_iter",
    "copy_page_from_iter_atomic",
    "copy_folio_from_iter_atomic",
    "_copy_from_user",
    "_copy_to_user",
    "clear_user_rep_good",
    "rep_stos_alternative",
];

/// The page: what ran, its class, where time and misses go, the worst locks, polls, devices and tasks.
pub fn text(observed: &Observed, width: usize, top: usize) -> String {
    let mut page = Page { observed, width: width.clamp(60, 200), top, out: String::new() };
    page.head();
    page.profile();
    page.locks();
    page.polls();
    page.block();
    page.memory();
    page.tasks();
    page.end();
    page.out
}

struct Page<'a> {
    observed: &'a Observed,
    width: usize,
    top: usize,
    out: String,
}

impl Page<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(cut(text.as_ref().trim_end(), self.width).trim_end());
        self.out.push('\n');
    }

    fn title(&mut self, text: &str) {
        let bold = anstyle::Style::new().bold();
        let _ = writeln!(self.out, "\n{bold}{}{bold:#}", cut(text, self.width));
    }

    fn ran(&self, name: &str) -> bool {
        self.observed.instruments.iter().any(|i| i.name == name && i.on)
    }

    fn head(&mut self) {
        let o = self.observed;
        self.line(format!("observed  {}", o.target));
        let cpu = o.cpu_ns;
        self.line(format!(
            "measured  {} on {} CPU{}, {} of CPU time ({} of one CPU){}",
            time(o.duration_ns),
            o.cpus,
            if o.cpus == 1 { "" } else { "s" },
            time(cpu),
            percent_of(cpu, o.duration_ns),
            lacks(o, "tasks")
        ));
        if o.duration_ns < LEAST_CLASSIFIED_NS {
            self.line(format!("class     none for runs under {}", time(LEAST_CLASSIFIED_NS)));
        }
        for phase in &o.phases {
            let span = if o.phases.len() == 1 {
                String::new()
            } else {
                format!("{}–{}: ", time(phase.from_ns), time(phase.to_ns))
            };
            self.line(format!("class     {span}{}, margin {:.0} points", phase.class, phase.margin_points));
            for part in crate::name::wrapped(&phase.evidence, self.width.saturating_sub(10)) {
                self.line(format!("          {part}"));
            }
        }
    }

    fn profile(&mut self) {
        let Some(profile) = &self.observed.profile else { return };
        if let Some(clock) = event_of(profile, "clock") {
            self.functions(profile, clock, "Where time goes");
        }
        if let Some(misses) = event_of(profile, "misses") {
            self.functions(profile, misses, "Where misses go");
            self.worst_function(profile);
        }
        for (index, event) in profile.events.iter().enumerate().filter(|(_, e)| e.role == "other") {
            self.functions(profile, index as u32, &format!("Where {} happen", event.name));
        }
    }

    fn functions(&mut self, profile: &Profile, event: u32, title: &str) {
        let Some(what) = profile.events.get(event as usize) else { return };
        let (samples, _) = total(profile, event);
        let rate = if what.period > 0 {
            format!("1 in {}", grouped(what.period))
        } else {
            format!("{} Hz", what.frequency_hz)
        };
        let shared = if what.running_ns < what.enabled_ns {
            format!(", counted {} of the time", percent_of(what.running_ns, what.enabled_ns))
        } else {
            String::new()
        };
        self.title(&format!(
            "{title} ({}, {} samples at {rate}, {} lost{shared})",
            what.name,
            grouped(samples),
            what.lost
        ));
        let hot = hottest(profile, event);
        let name_width = self.width.saturating_sub(38);
        self.line(format!("  {:>6} {:>6}  {:<name_width$}  {}", "self", "with", "function", "in"));
        let shown: Vec<&Hot> = hot.iter().filter(|h| h.samples > 0).take(self.top).collect();
        for (h, name) in shown.iter().zip(of_table(shown.iter().map(|h| h.name.as_str()))) {
            self.line(format!(
                "  {:>6} {:>6}  {:<name_width$}  {}",
                percent_of(h.samples, samples),
                percent_of(h.inclusive, samples),
                cut(&name, name_width),
                cut(short(&h.module), 18)
            ));
        }
        let by_line: Vec<_> = lines(profile, event).into_iter().filter(|h| h.name.contains(':') && !h.kernel).collect();
        if let Some(first) = by_line.first() {
            self.line(format!(
                "  hottest line: {} ({})",
                place(&first.name, self.width.saturating_sub(30)),
                percent_of(first.samples, samples)
            ));
        }
        let copy = hot.iter().find(|h| COPIES.contains(&h.name.as_str()) && h.samples * 50 >= samples);
        if let Some(copy) = copy {
            let sites = call_sites(profile, event, &copy.name);
            let list: Vec<String> = sites
                .iter()
                .take(3)
                .map(|s| format!("{} {}", s.frame.function, percent_of(s.samples, copy.samples)))
                .collect();
            let callers = format!("{} is called by {}", copy.name, list.join(", "));
            for (i, part) in crate::name::wrapped(&callers, self.width.saturating_sub(4)).iter().enumerate() {
                self.line(format!("{}{part}", if i == 0 { "  " } else { "    " }));
            }
            if what.role == "clock" && event_of(profile, "misses").is_none() {
                self.line("  its shares of references and of misses: modelled by nearmiss trace -- CMD,");
                self.line("  measured where there is a performance-monitoring unit");
            }
        }
    }

    /// P1's form: share of references, share of misses.
    fn worst_function(&mut self, profile: &Profile) {
        if let Some(worst) = ratios(profile).first() {
            self.line(format!(
                "  {} has {} of references, {} of misses",
                worst.name,
                fixed_percent(worst.references, 0),
                fixed_percent(worst.misses, 0)
            ));
        }
    }

    fn locks(&mut self) {
        if !self.ran("locks") {
            return;
        }
        let o = self.observed;
        let contended: Vec<&Lock> = o.locks.iter().filter(|l| l.contended).collect();
        let others: Vec<&Lock> = o.locks.iter().filter(|l| !l.contended).collect();
        self.lock_table("Lock waits", &contended);
        if !others.is_empty() {
            self.lock_table("Waits between threads (condition variables, joins, unknown futexes)", &others);
        }
    }

    fn lock_table(&mut self, title: &str, locks: &[&Lock]) {
        let total: u64 = locks.iter().map(|l| l.total_ns).sum();
        let waits: u64 = locks.iter().map(|l| l.count).sum();
        let share = percent_of(total, self.observed.duration_ns);
        let lacks = lacks(self.observed, "lock waits");
        self.title(&format!("{title}: {}, {} in all, {share} of run time{lacks}", grouped(waits), time(total)));
        if locks.is_empty() {
            return;
        }
        self.line(format!(
            "  {:>9} {:>8} {:>8} {:>8} {:>8}  {}",
            "total", "waits", "average", "max", "min", "lock, called from"
        ));
        for lock in locks.iter().take(self.top) {
            self.lock(lock);
        }
    }

    fn lock(&mut self, lock: &Lock) {
        let name = lock_name(lock, of_processes(&self.observed.locks));
        self.line(format!(
            "  {:>9} {:>8} {:>8} {:>8} {:>8}  {name}",
            time(lock.total_ns),
            grouped(lock.count),
            time(lock.total_ns / lock.count.max(1)),
            time(lock.max_ns),
            time(lock.min_ns),
        ));
        if lock.acquisitions > 0 {
            let share = percent_of(lock.count, lock.acquisitions);
            self.line(format!("            waited for in {share} of {} acquisitions", grouped(lock.acquisitions)));
        }
        let sampled: u64 = lock.call_sites.iter().map(|(_, n)| n).sum();
        if lock.call_sites.is_empty() {
            let callers: Vec<String> = lock.stack.iter().take(3).map(|f| folded(&f.function)).collect();
            if !callers.is_empty() {
                self.line(format!("            {}", callers.join(" ← ")));
            }
        }
        for (frame, n) in lock.call_sites.iter().take(3) {
            let share = format!(" ({n} of {sampled} looked at)");
            let room = self.width.saturating_sub(12 + share.len());
            let name = cut(&folded(&frame.function), room / 2);
            let at = if frame.line.is_empty() {
                String::new()
            } else {
                format!(" at {}", place(&frame.line, room.saturating_sub(name.chars().count() + 4)))
            };
            self.line(format!("            {name}{at}{share}"));
        }
    }

    fn polls(&mut self) {
        if !self.ran("polls") {
            return;
        }
        let o = self.observed;
        let calls: u64 = o.polls.iter().map(|p| p.calls).sum();
        let events: u64 = o.polls.iter().map(|p| p.events).sum();
        let on_cpu: u64 = o.polls.iter().map(|p| p.on_cpu_ns).sum();
        self.title(&format!(
            "Polls: {} calls, {:.1}/s, {:.2} events a call, {} of one CPU in them{}",
            grouped(calls),
            rate(calls, o),
            if calls == 0 { 0.0 } else { events as f64 / calls as f64 },
            percent_of(on_cpu, o.duration_ns),
            lacks(o, "poll threads")
        ));
        if o.polls.is_empty() {
            return;
        }
        self.line(format!(
            "  {:>9} {:>8} {:>7} {:>7} {:>6} {:>8} {:>8}  {}",
            "calls", "calls/s", "ev/call", "polled", "empty", "blocked", "on CPU", "call, thread"
        ));
        for poll in o.polls.iter().take(self.top) {
            self.poll(poll);
        }
        if let Some(waits) = &o.waits {
            let [slept, woken] = [waits.sleep_cpu_ns, waits.woken_cpu_ns].map(time);
            let costs = format!("a sleep of 500 µs costs {slept} of CPU time here, being woken {woken} (measured)");
            for (i, part) in crate::name::wrapped(&costs, self.width.saturating_sub(4)).iter().enumerate() {
                self.line(format!("{}{part}", if i == 0 { "  " } else { "    " }));
            }
        }
    }

    fn poll(&mut self, p: &Poll) {
        let a_call = |sum: u64| sum as f64 / p.calls.max(1) as f64;
        let descriptors = descriptors(p);
        self.line(format!(
            "  {:>9} {:>8.1} {:>7.2} {descriptors:>7} {:>6} {:>8} {:>8}  {} {} {}",
            grouped(p.calls),
            rate(p.calls, self.observed),
            a_call(p.events),
            percent_of(p.empty, p.calls),
            time(p.blocked_ns / (p.calls + u64::from(p.open)).max(1)),
            time(p.on_cpu_ns / p.calls.max(1)),
            p.call,
            p.name,
            p.thread
        ));
        if p.again > 0 {
            let compared = p.events.saturating_sub(p.not_compared);
            let share = percent_of(p.again, compared);
            self.line(format!("            left over: {} of {} events ({share})", grouped(p.again), grouped(compared)));
        }
    }

    fn block(&mut self) {
        let o = self.observed;
        if !self.ran("io") {
            return;
        }
        let count: u64 = o.io.iter().map(|i| i.count).sum();
        self.title(&format!("Block I/O: {} requests, {}", grouped(count), bytes(o.io.iter().map(|i| i.bytes).sum())));
        if o.io.is_empty() {
            return;
        }
        self.line(format!(
            "  {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}  {}",
            "requests", "bytes", "queued", "in device", "p90", "max", "device, operation, submitter"
        ));
        for io in o.io.iter().take(self.top) {
            self.line(format!(
                "  {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}  {} {} {} {}",
                grouped(io.count),
                bytes(io.bytes),
                time(io.queue_ns / io.count.max(1)),
                time(io.device_ns / io.count.max(1)),
                format!("<{}", time(quantile(&io.log2_device_ns, 0.9))),
                time(io.max_ns),
                io.device,
                io.operation,
                io.name,
                io.process
            ));
        }
        for q in &o.queues {
            self.line(format!(
                "  queue of {}: busy {}, mean length {:.2}, at most {}",
                q.device,
                percent_of(q.busy_ns, o.duration_ns),
                q.weighted_ns as f64 / o.duration_ns.max(1) as f64,
                q.max
            ));
        }
        let mut waiters: Vec<(String, u64)> = o
            .tasks
            .iter()
            .filter_map(|t| Some((format!("{} {}", t.name, t.thread), t.off.iter().find(|r| r.0 == "block I/O")?.1)))
            .collect();
        waiters.sort_by_key(|w| std::cmp::Reverse(w.1));
        if !waiters.is_empty() {
            let list: Vec<String> = waiters.iter().take(3).map(|(who, ns)| format!("{who} {}", time(*ns))).collect();
            self.line(format!("  waited for it: {}", list.join(", ")));
        }
    }

    fn memory(&mut self) {
        let o = self.observed;
        if o.memory.is_empty() {
            return;
        }
        let sum = |of: fn(&MemoryUse) -> u64| o.memory.iter().map(of).sum::<u64>();
        self.title(&format!(
            "Pages of the kernel: {} allocated, {} direct reclaims, {}{}",
            grouped(sum(|m| m.pages)),
            grouped(sum(|m| m.reclaims)),
            time(sum(|m| m.reclaim_ns)),
            lacks(o, "page allocations")
        ));
        self.line(format!(
            "  {:>10} {:>10} {:>9} {:>9} {:>9} {:>10}  {}",
            "pages", "calls", "reclaims", "time", "max", "found", "process"
        ));
        for m in o.memory.iter().take(self.top) {
            self.line(format!(
                "  {:>10} {:>10} {:>9} {:>9} {:>9} {:>10}  {} {}",
                grouped(m.pages),
                grouped(m.allocations),
                grouped(m.reclaims),
                time(m.reclaim_ns),
                time(m.max_ns),
                grouped(m.reclaimed),
                m.name,
                m.process
            ));
        }
    }

    fn tasks(&mut self) {
        let o = self.observed;
        if !self.ran("sched") || o.tasks.is_empty() {
            return;
        }
        let sum = |f: fn(&Task) -> u64| o.tasks.iter().map(f).sum::<u64>();
        self.title(&format!(
            "Tasks: {}; {} switches, {} migrations, {} waiting for a CPU{}",
            o.tasks.len(),
            grouped(sum(|t| t.voluntary + t.involuntary)),
            grouped(sum(|t| t.migrations)),
            time(sum(|t| t.wait_ns)),
            lacks(o, "tasks")
        ));
        self.line(format!(
            "  {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}  {}",
            "on CPU", "runnable", "waiting", "in all", "switches", "moves", "task, waiting for"
        ));
        for t in o.tasks.iter().take(self.top) {
            self.task(t);
        }
        let (cpu, stolen) = (sum(|t| t.cpu_ns), sum(|t| t.stolen_ns));
        if stolen * 100 >= cpu.max(1) {
            self.line(format!("  a hypervisor took {} of the time on CPU", percent_of(stolen, cpu)));
        }
    }

    fn task(&mut self, t: &Task) {
        let in_all = if t.life_ns > 0 { time(t.life_ns) } else { "–".to_owned() };
        self.line(format!(
            "  {:>8} {:>8} {:>8} {in_all:>8} {:>8} {:>6}  {} {}",
            time(t.cpu_ns),
            time(t.wait_ns),
            time(waited(t)),
            grouped(t.voluntary + t.involuntary),
            t.migrations,
            t.name,
            t.thread
        ));
        let off: Vec<String> = t.off.iter().take(4).map(|(r, ns, _)| format!("{r} {}", time(*ns))).collect();
        if !off.is_empty() {
            self.line(format!("            {}", off.join(", ")));
        }
    }

    fn end(&mut self) {
        let o = self.observed;
        let mut rows: Vec<String> = Vec::new();
        for (names, how, to_enable) in missing(o) {
            let enable = if to_enable.is_empty() { String::new() } else { format!("; {to_enable}") };
            rows.push(format!("no {}: {how}{enable}", names.join(", ")));
        }
        for (what, n) in o.lost.iter() {
            rows.push(format!("lost: {} {what}", grouped(*n)));
        }
        rows.extend(o.notes.iter().cloned());
        for i in o.instruments.iter().filter(|i| i.costs_others()) {
            rows.push(format!("{}: {}", i.name, i.how));
        }
        rows.push(format!("the instruments held {} of memory", bytes(o.instrument_bytes)));
        self.title("Notes");
        for row in rows {
            for (i, part) in crate::name::wrapped(&row, self.width.saturating_sub(4)).iter().enumerate() {
                self.line(format!("{}{part}", if i == 0 { "  " } else { "    " }));
            }
        }
    }
}

/// Descriptors that a call polls: of poll and select on average, of epoll as its set was when looked at.
pub fn descriptors(p: &Poll) -> String {
    match (p.descriptors, p.watched) {
        (0, 0) => "–".to_owned(),
        (0, watched) => format!("≈{watched}"),
        (polled, _) => format!("{:.1}", polled as f64 / p.calls.max(1) as f64),
    }
}

/// Returns what could not be had, those with the same reason together: names, why, what to type.
pub fn missing(o: &Observed) -> Vec<(Vec<&str>, &str, &str)> {
    let mut rows: Vec<(Vec<&str>, &str, &str)> = Vec::new();
    for i in o.instruments.iter().filter(|i| !i.on) {
        match rows.iter_mut().find(|(_, how, _)| *how == i.how) {
            Some((names, ..)) => names.push(&i.name),
            None => rows.push((vec![&i.name], &i.how, &i.to_enable)),
        }
    }
    rows
}
