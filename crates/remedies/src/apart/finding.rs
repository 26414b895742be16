//! From a subject to a finding: what happens, why, what to do, what it would gain.

use super::costs::{self, AddressCosts, least_spacing};
use super::evidence::{self, place, threads};
use super::subject::{Class, DOMINATES, Subject};
use crate::command_line::command_line;
use crate::exactness::exactness;
use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Suspicion, Traced, dearest_wait};
use nearmiss_record::finding::{Base, EvidenceKind, EvidenceLine, Finding, LEAST_GAIN, Prediction, Reach};
use nearmiss_record::model::{LineSharing, ModelRecord, ObjectKind, SharedLineRow, Tenant};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{bytes, counted, percent};
use std::sync::Arc;

/// The policy of a finding's replays, behind the run as it was.
const CHANGED: usize = 1;

/// Lines of the same objects, with what the model counted in the modelled order.
pub struct Apart {
    subject: Subject,
    modelled: Arc<ModelRecord>,
}

impl Apart {
    /// Makes the suspicion of a subject of this run.
    pub fn new(subject: Subject, modelled: Arc<ModelRecord>) -> Self {
        Apart { subject, modelled }
    }

    fn line_bytes(&self) -> u64 {
        self.modelled.machine.data_cache(1).map_or(64, |cache| cache.line.0)
    }

    fn share(&self, cycles: u64) -> f64 {
        cycles as f64 / self.modelled.totals.cycles.max(1) as f64
    }

    /// The line that costs most, of those shared in this way where there is one.
    fn heaviest(&self, sharing: LineSharing) -> Option<&SharedLineRow> {
        let lines = || self.subject.lines.iter();
        let alike = lines().filter(|line| line.sharing() == sharing);
        alike.max_by_key(|line| line.stall_cycles).or_else(|| lines().max_by_key(|line| line.stall_cycles))
    }

    fn name(&self, sharing: LineSharing) -> String {
        let lines = counted(self.subject.lines_shared(sharing).len() as u64, "line");
        let tenants = self.heaviest(sharing).map_or(&[][..], |line| &line.tenants);
        let mut names: Vec<&str> = tenants.iter().map(|tenant| tenant.object.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(3);
        let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        match self.subject.class {
            Class::Blocks => format!("{lines} of malloc blocks from {}", names.join(" and ")),
            Class::Fields | Class::Variables => format!("{lines} of {}", names.join(" and ")),
        }
    }

    fn symptom(&self, sharing: LineSharing) -> String {
        let how = match sharing {
            LineSharing::False => "though the CPUs use different bytes (false sharing)",
            LineSharing::True => "because the CPUs use the same bytes (true sharing)",
        };
        let waits = match sharing {
            LineSharing::False => self.subject.apart_cycles(),
            LineSharing::True => self.subject.stall_cycles(),
        };
        let cycles = percent(self.share(waits));
        format!("{cycles} of the modelled cycles wait for {} to pass between CPUs, {how}", self.name(sharing))
    }

    fn cause(&self, sharing: LineSharing) -> String {
        let Some(row) = self.heaviest(sharing) else { return String::new() };
        match sharing {
            LineSharing::False => {
                let groups = one_a_group(row);
                let sides: Vec<String> = two_sides(&groups)
                    .map_or(Vec::new(), |(writes, beside)| vec![side(writes, &[]), side(beside, &writes.writers)]);
                let line = bytes(self.line_bytes());
                format!(
                    "{} share a line of {line}: each write takes the whole line from the other CPU.",
                    sides.join(" and ")
                )
            }
            LineSharing::True => {
                let written = row.tenants.iter().filter(|tenant| !tenant.writers.is_empty());
                let most = written.max_by_key(|tenant| tenant.writers.len() + tenant.readers.len());
                most.map_or(String::new(), |tenant| {
                    let mut users = [tenant.writers.as_slice(), &tenant.readers].concat();
                    users.sort_unstable();
                    users.dedup();
                    let (place, users) = (place(tenant), threads(&users));
                    format!("{place} is used by {users}, so the line passes from CPU to CPU wherever it lies.")
                })
            }
        }
    }

    /// Returns who can do it, and the options of `apply apart`.
    fn reach(&self, sharing: LineSharing) -> (Reach, Vec<String>) {
        let inside = |why: &str, change| (Reach::Inside { why: why.to_owned(), change }, Vec::new());
        match (sharing, self.subject.class) {
            (LineSharing::True, _) => inside(
                "the tasks need the same bytes, and no other place in memory changes that",
                "hand the bytes over less often: count per thread and add up at the end, take a lock once for several \
                 items, or let each CPU keep a copy of what it mostly reads"
                    .to_owned(),
            ),
            (LineSharing::False, Class::Blocks) => {
                let (least, most) = self.subject.block_bytes();
                (Reach::Outside, vec!["--sizes".to_owned(), format!("{least}-{most}")])
            }
            (LineSharing::False, Class::Fields | Class::Variables) => inside(
                "they are variables or parts of one object, and their places are fixed when the program is built",
                self.change(),
            ),
        }
    }

    /// Describes which bytes to move, and how.
    fn change(&self) -> String {
        let spacing = self.line_bytes();
        let Some(row) = self.heaviest(LineSharing::False) else { return String::new() };
        let groups = one_a_group(row);
        let moved: Vec<String> = groups.iter().skip(1).take(3).map(|tenant| field(tenant)).collect();
        let stays = groups.first().map_or(String::new(), |tenant| field(tenant));
        let moved = format!("move {} away from {stays}", moved.join(" and "));
        if is_managed(row) {
            return format!("{moved}: {spacing} bytes of padding between them (Go: _ [{spacing}]byte)");
        }
        if self.subject.is_misaligned(spacing) {
            let (object, beyond) = (&groups[0].object, groups[0].object_address % spacing);
            return format!(
                "align `{object}` to {spacing} bytes, it begins {beyond} bytes behind a line: _Alignas({spacing}) in C, \
                 alignas({spacing}) in C++, aligned_alloc({spacing}, …) for a block"
            );
        }
        if let Some(stride) = stride(&groups) {
            let object = &groups[0].object;
            return format!(
                "place the parts of `{object}` {spacing} bytes apart instead of {stride}: _Alignas({spacing}) in C, \
                 alignas({spacing}) in C++"
            );
        }
        format!(
            "{moved}: put _Alignas({spacing}) (C++: alignas({spacing})) before each, and let nothing else follow on its line"
        )
    }

    fn treatment(&self, sharing: LineSharing) -> String {
        let spacing = self.line_bytes();
        match (sharing, self.subject.class) {
            (LineSharing::True, _) => {
                "Fewer hand-overs; the gain is a bound, as if every CPU had a copy of its own".to_owned()
            }
            (LineSharing::False, Class::Blocks) => {
                let (least, most) = self.subject.block_bytes();
                let sizes = if least == most { least.to_string() } else { format!("{least} to {most}") };
                format!("Lines of {spacing} bytes of its own for each malloc block of {sizes} bytes")
            }
            _ => format!("A line of {spacing} bytes of its own for what different threads use"),
        }
    }

    fn prediction(&self, case: &Traced, costs: &AddressCosts, sharing: LineSharing) -> Prediction {
        let (low, high) = costs.range(CHANGED);
        let mut approximate = vec![
            "The recorded order hides most sharing and its gain is a lower bound; the modelled order takes what ran one \
             after another in the recorder as simultaneous."
                .to_owned(),
        ];
        if nearmiss_machine::describe::can_move_addresses(case.filter).is_err() {
            approximate.push(exactness(case).to_owned());
        }
        if case.machine().memory.nodes > 1 {
            approximate.push("the new lines lie in the last memory node".to_owned());
        }
        Prediction {
            gain: costs.gain(1, CHANGED).0,
            low: if sharing == LineSharing::True { 0.0 } else { low },
            high,
            of_whole_run: costs.of_whole_run(CHANGED),
            modelled_cycles: costs.cycles_before(),
            measured_cycles: None,
            of: Base::Cycles { measured: false, at_most: sharing == LineSharing::True },
            placements: costs.placements.clone(),
            overlap: case.machine().hidden_share(),
            function: None,
            approximate,
            ..Prediction::default()
        }
    }

    /// How the lines are shared, and replays of what would help.
    fn judge(&self, case: &Traced) -> Result<(LineSharing, AddressCosts), CaseError> {
        let spacing = least_spacing(case);
        let replayed = |policy| AddressCosts::new(case, &self.modelled, vec![policy]);
        let copies = || replayed(self.subject.copies(self.line_bytes(), spacing));
        if self.subject.apart_cycles() == 0 {
            return Ok((LineSharing::True, copies()?));
        }
        let apart = replayed(self.subject.apart(spacing))?;
        if apart.gain(1, CHANGED).0 < LEAST_GAIN && self.most_gain() >= DOMINATES {
            return Ok((LineSharing::True, copies()?));
        }
        Ok((LineSharing::False, apart))
    }

    fn unless(&self, sharing: LineSharing) -> Vec<String> {
        let mut list = vec!["the tasks run on one CPU, or not at the same time".to_owned()];
        if sharing == LineSharing::False && self.subject.class == Class::Blocks {
            list.push("the blocks come from an allocator inside the program, which no library can wrap".to_owned());
        }
        list
    }
}

/// Share of the cycles where each reference waits for another CPU, at the dearest price, beside the `rest`.
fn least_favourable(references: u64, dearest_cycles: f64, rest: u64) -> f64 {
    let waits = references as f64 * dearest_cycles;
    waits / (waits + rest as f64).max(1.0)
}

/// Describes the savings of the change in each order.
fn both_orders(costs: &AddressCosts, sharing: LineSharing) -> String {
    let [recorded, modelled] = [0, 1].map(|order| percent(costs.gain(order, CHANGED).0));
    let change = match sharing {
        LineSharing::False => "Tenants apart save",
        LineSharing::True => "A copy for each CPU would save",
    };
    format!(
        "{change} {recorded} of the cycles in the recorded order (a lower bound) and {modelled} in the modelled order."
    )
}

/// Whether a language's runtime places an object of the line.
fn is_managed(row: &SharedLineRow) -> bool {
    row.tenants.iter().any(|tenant| tenant.kind == Some(ObjectKind::Managed))
}

/// The first tenant of each group, or the first that is written where one is.
fn one_a_group(row: &SharedLineRow) -> Vec<&Tenant> {
    let mut first: Vec<&Tenant> = Vec::new();
    for tenant in &row.tenants {
        match first.iter_mut().find(|other| other.group == tenant.group) {
            Some(known) if known.writers.is_empty() && !tenant.writers.is_empty() => *known = tenant,
            Some(_) => {}
            None => first.push(tenant),
        }
    }
    first
}

/// A tenant that is written, which takes the line from all others, and one that another thread uses; the first two if no
/// thread is alone with either.
fn two_sides<'a>(groups: &[&'a Tenant]) -> Option<(&'a Tenant, &'a Tenant)> {
    let written = groups.iter().filter(|tenant| !tenant.writers.is_empty());
    let mut pairs = written.flat_map(|writes| groups.iter().map(move |beside| (*writes, *beside)));
    let of_two = |(writes, beside): &(&Tenant, &Tenant)| {
        let mut users = beside.writers.iter().chain(&beside.readers);
        !std::ptr::eq(*writes, *beside) && users.any(|user| !writes.writers.contains(user))
    };
    let first_two = || Some((*groups.first()?, *groups.get(1)?));
    pairs.find(of_two).or_else(first_two)
}

/// `` `counters`+0x8 (which thread 105 writes at a.c:22 count) ``: its users but for the `others`, if it has more.
fn side(tenant: &Tenant, others: &[u32]) -> String {
    let without = |users: &[u32]| users.iter().copied().filter(|user| !others.contains(user)).collect::<Vec<u32>>();
    let (writers, readers) = (without(&tenant.writers), without(&tenant.readers));
    let (what, users, sites) = match (writers.is_empty(), readers.is_empty()) {
        (false, _) => ("write", writers, &tenant.written_at),
        (true, false) => ("read", readers, &tenant.read_at),
        (true, true) => ("write", tenant.writers.clone(), &tenant.written_at),
    };
    let verb = if users.len() == 1 { format!("{what}s") } else { what.to_owned() };
    let at = sites.first().map_or(String::new(), |site| format!(" at {site}"));
    format!("{} (which {} {verb}{at})", place(tenant), threads(&users))
}

/// `` the 8 bytes at offset 8 of `pair` ``, `` `counter` ``.
fn field(tenant: &Tenant) -> String {
    let size = u64::from(tenant.bytes);
    if tenant.offset == 0 && size == tenant.object_bytes {
        return format!("`{}`", tenant.object);
    }
    format!("the {} at offset {} of `{}`", counted(size, "byte"), tenant.offset, tenant.object)
}

/// Bytes from one tenant to the next where they are elements of one array, three or more or each a writer of its own.
fn stride(groups: &[&Tenant]) -> Option<u64> {
    let [first, second, rest @ ..] = groups else { return None };
    let stride = second.offset.checked_sub(first.offset)?;
    let alike = |tenant: &&Tenant| {
        tenant.object_address == first.object_address
            && tenant.bytes == first.bytes
            && tenant.written_at.iter().any(|site| first.written_at.contains(site))
            && tenant.offset.checked_sub(first.offset).is_some_and(|offset| offset % stride.max(1) == 0)
    };
    (stride > 0 && alike(second) && rest.iter().all(alike)).then_some(stride)
}

impl Suspicion for Apart {
    fn most_gain(&self) -> f64 {
        self.share(self.subject.stall_cycles())
    }

    fn bound(&self) -> f64 {
        let rest = self.modelled.totals.cycles.saturating_sub(self.subject.stall_cycles());
        let dearest = dearest_wait(&self.modelled.machine);
        least_favourable(self.subject.references(), dearest, rest).max(self.most_gain())
    }

    fn lacks(&self, case: &Case) -> Option<&'static str> {
        let filter = case.traced.as_ref().map(|case| case.filter)?;
        nearmiss_machine::describe::can_move_addresses(filter).is_err().then_some("addresses")
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let case = case.traced()?;
        let (sharing, costs) = self.judge(case)?;
        let (reach, options) = self.reach(sharing);
        let outside = reach == Reach::Outside;
        let mut evidence = evidence::evidence(&self.subject, self.most_gain());
        // How CPUs interleave depends on the placement too: another one may show more sharing than was seen first.
        evidence.most_gain = evidence.most_gain.max(costs.range(CHANGED).1);
        evidence.lines.push(EvidenceLine::new("Orders", both_orders(&costs, sharing)));
        Ok(Finding {
            remedy: super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: self.symptom(sharing),
            cause: self.cause(sharing),
            evidence,
            treatment: self.treatment(sharing),
            prediction: self.prediction(case, &costs, sharing),
            unless: self.unless(sharing),
            apply: outside.then(|| command_line("apply", super::NAME, &options, &case.manifest.command)),
            verify: outside.then(|| command_line("verify", super::NAME, &options, &case.manifest.command)),
            reach,
        })
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        let least = least_spacing(case);
        let given = request.numbers();
        if let Some(small) = given.iter().find(|spacing| **spacing < least) {
            let why = format!(
                "--spacings {small}: {} keeps {least} bytes together; give as many at least",
                case.machine().name
            );
            return Err(CaseError::Unfit(why));
        }
        let spacings = if given.is_empty() { vec![least, 2 * least] } else { given };
        let costs = AddressCosts::new(case, &self.modelled, costs::apart(&self.subject, &spacings))?;
        Ok(costs.table(case, self.name(LineSharing::False), &spacings))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tenant(offset: u64, bytes: u32, group: u32) -> Tenant {
        Tenant {
            object: "counters".into(),
            object_address: 0x1000,
            object_bytes: 64,
            offset,
            bytes,
            group,
            writers: vec![100 + group],
            written_at: vec!["a.c:22 count".into()],
            ..Tenant::default()
        }
    }

    #[test]
    fn a_group_is_named_by_what_is_written_of_it() {
        let mut tenants = [tenant(0, 8, 0), tenant(8, 8, 0), tenant(16, 8, 1)];
        tenants[0].writers.clear();
        let row = SharedLineRow { tenants: tenants.to_vec(), ..SharedLineRow::default() };
        assert_eq!(one_a_group(&row).iter().map(|tenant| tenant.offset).collect::<Vec<_>>(), [8, 16]);
    }

    #[test]
    fn a_bound_counts_each_reference_at_the_dearest_price() {
        assert_eq!(least_favourable(10_000, 300.0, 1_000_000), 0.75);
        assert_eq!(least_favourable(0, 300.0, 0), 0.0);
    }

    #[test]
    fn elements_of_an_array_are_padded_and_fields_are_moved() {
        let elements = [tenant(0, 8, 0), tenant(8, 8, 1), tenant(24, 8, 2)];
        assert_eq!(stride(&elements.iter().collect::<Vec<_>>()), Some(8));
        let mut fields = [tenant(0, 8, 0), tenant(8, 8, 1)];
        fields[1].written_at = vec!["a.c:30 other".into()];
        assert_eq!(stride(&fields.iter().collect::<Vec<_>>()), None);
        assert_eq!(stride(&[&tenant(0, 8, 0), &tenant(8, 4, 1)]), None);
        assert_eq!(field(&fields[1]), "the 8 bytes at offset 8 of `counters`");
        assert_eq!(field(&tenant(0, 64, 0)), "`counters`");
        assert_eq!(side(&fields[1], &[]), "`counters`+0x8 (which thread 101 writes at a.c:30 other)");
    }

    #[test]
    fn the_sides_of_a_line_are_two_threads() {
        // A queue: its producer writes the index that its consumer reads, and an index of its own beside it.
        let mut index = tenant(0, 8, 0);
        (index.readers, index.read_at) = (vec![131], vec!["queue.cc:60 take".into()]);
        index.writers = vec![130];
        let own = Tenant { writers: vec![130], ..tenant(8, 8, 1) };
        let groups = [&index, &own];
        let (writes, beside) = two_sides(&groups).unwrap();
        assert_eq!((writes.offset, beside.offset), (8, 0));
        assert_eq!(side(beside, &writes.writers), "`counters` (which thread 131 reads at queue.cc:60 take)");
        assert!(two_sides(&[&own]).is_none());
    }
}
