//! Table (b): the L3 misses by function, and the savings of copies that bypass the caches (P1, sections 4.2.3 to
//! 4.2.6).

use super::figures::{self, Left};
use super::function::Function;
use super::replica::{Copies, Counts, Load};
use super::{MACHINE, WORK};
use crate::parallel::simulate_all;
use crate::record::{Row, Shape, Table, Theirs, Unit};
use crate::text::figure;
use crate::{PaperError, machine};

/// One load under each kind of copies.
#[derive(Clone, Debug)]
pub struct Patched {
    /// The kernel as it was.
    pub original: Counts,
    /// Every copy bypasses: the first patch.
    pub every: Counts,
    /// Chosen call sites bypass: the final patch.
    pub chosen: Counts,
}

/// Both loads.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Pattern 9.
    pub writing: Patched,
    /// Pattern 9 with each record coming out of a pipe.
    pub piped: Patched,
}

/// How many simulations [`shares`] makes.
pub const PARTS: usize = 6;
/// CPUs of pattern 9, a stream each.
pub const CPUS: usize = 4;

/// Simulates all.
pub fn shares(done: &(dyn Fn() + Sync)) -> Result<Shares, PaperError> {
    let load = |piped, copies, blame| Load { cpus: CPUS, piped, copies, work: WORK, blame };
    let inputs = [
        load(false, Copies::Cached, true),
        load(false, Copies::EveryBypasses, false),
        load(false, Copies::ChosenBypass, false),
        load(true, Copies::Cached, false),
        load(true, Copies::EveryBypasses, false),
        load(true, Copies::ChosenBypass, false),
    ];
    let machine = machine(MACHINE)?;
    let mut counts = simulate_all(&inputs, done, |load| load.run(&machine))?.into_iter();
    let mut patched = || {
        let mut next = || counts.next().ok_or(PaperError::Stuck);
        Ok::<_, PaperError>(Patched { original: next()?, every: next()?, chosen: next()? })
    };
    Ok(Shares { writing: patched()?, piped: patched()? })
}

/// One count of a record in percent of another run's.
fn percent(of: (&Counts, u64), against: (&Counts, u64)) -> f64 {
    of.0.each(of.1) / against.0.each(against.1) * 100.0
}

impl Patched {
    /// L3 misses, of the original's.
    pub fn misses_percent(&self, counts: &Counts) -> f64 {
        percent((counts, counts.misses()), (&self.original, self.original.misses()))
    }

    /// L3 misses in the copy, of the original's.
    pub fn copy_misses_percent(&self, counts: &Counts) -> f64 {
        let of = |counts: &Counts| counts.of(Function::Copy).misses;
        percent((counts, of(counts)), (&self.original, of(&self.original)))
    }

    /// Cycles, of the original's.
    pub fn cycles_percent(&self, counts: &Counts) -> f64 {
        percent((counts, counts.cycles), (&self.original, self.original.cycles))
    }

    fn transactions_percent(&self, counts: &Counts) -> f64 {
        percent((counts, counts.bus.transactions()), (&self.original, self.original.bus.transactions()))
    }
}

/// Returns the table of the paper's figures and ours.
pub fn table(shares: &Shares) -> Table {
    let Shares { writing, piped } = shares;
    let mut rows = original(&writing.original);
    rows.extend(decomposed(writing));
    rows.extend(patch("every copy bypasses", writing, &writing.every, Some(figures::FIRST_PATCH)));
    rows.extend(patch("chosen sites bypass", writing, &writing.chosen, Some(figures::FINAL_PATCH)));
    rows.extend(patch("read at once, every copy", piped, &piped.every, None));
    rows.extend(patch("read at once, chosen sites", piped, &piped.chosen, None));
    Table {
        name: "b".to_owned(),
        title: "4 streams on 4 Xeon MP: L3 misses, and copies that bypass the caches".to_owned(),
        source: "sections 4.2.3 to 4.2.6".to_owned(),
        known: None,
        rows,
        grid: None,
        shapes: shapes(shares),
        notes: Vec::new(),
    }
}

fn share(counts: &Counts, function: Function) -> f64 {
    percent((counts, counts.of(function).misses), (counts, counts.misses()))
}

fn original(counts: &Counts) -> Vec<Row> {
    let row = |what: &str, unit, theirs, ours| Row::new("original", what, unit, Theirs::Figure(theirs), ours);
    let copy = counts.of(Function::Copy);
    let references = percent((counts, copy.references), (counts, counts.references()));
    let of_clock = percent((counts, copy.stall_cycles + counts.copy_instructions()), (counts, counts.cycles));
    let missed = |function: Function, theirs| {
        row(&format!("L3 misses in {}", function.name()), Unit::Percent, theirs, share(counts, function))
    };
    vec![
        missed(Function::Copy, figures::COPY_MISS_PERCENT).fitted(),
        row("references of L2 and L3 in the copy", Unit::Percent, figures::COPY_REFERENCE_PERCENT, references).fitted(),
        missed(Function::LockIrq, figures::LOCK_IRQ_MISS_PERCENT),
        missed(Function::Lock, figures::LOCK_MISS_PERCENT),
        missed(Function::MapPieces, figures::MAP_PIECES_MISS_PERCENT),
        missed(Function::JournalHead, figures::JOURNAL_HEAD_MISS_PERCENT),
        row("L3 misses a record", Unit::Count, figures::each(figures::MISSES), counts.each(counts.misses())),
        row("the same in the copy", Unit::Count, figures::each(figures::COPY_MISSES), counts.each(copy.misses)),
        row("cycles a record", Unit::Count, figures::cycles_each(), counts.each(counts.cycles)).fitted(),
        row("cycles in the copy", Unit::Percent, figures::COPY_CLOCK_PERCENT, of_clock),
    ]
}

/// In percent of the original's misses, as its table 4.2-10 has them in samples.
fn decomposed(patched: &Patched) -> Vec<Row> {
    let Patched { original, every, .. } = patched;
    let of_original = |ours: f64| ours / original.each(original.misses()) * 100.0;
    let [all, copy] = figures::DECOMPOSED;
    let theirs = |samples: f64| Theirs::Figure(samples / all * 100.0);
    let row = |what: &str, theirs, ours| Row::new("of the original's misses", what, Unit::Percent, theirs, ours);
    let copys = original.each(original.of(Function::Copy).misses);
    let before = original.each(original.misses()) - copys;
    let after = every.each(every.misses());
    let [by_copy, by_others] = original.blamed;
    let blamed = by_copy as f64 / (by_copy + by_others).max(1) as f64 * 100.0;
    vec![
        row("write misses of the copy", theirs(copy), of_original(copys)),
        row("all other misses", theirs(all - copy), of_original(before)),
        row("all other misses, the copy bypassing", theirs(figures::DECOMPOSED_AFTER), of_original(after)),
        row("so the copy caused", theirs(all - copy - figures::DECOMPOSED_AFTER), of_original(before - after)).fitted(),
        Row::new("of misses with a culprit", "the copy pushed the line out", Unit::Percent, Theirs::None, blamed),
    ]
}

fn patch(of: &str, patched: &Patched, counts: &Counts, theirs: Option<Left>) -> Vec<Row> {
    let row = |what: &str, theirs: Option<f64>, ours| {
        Row::new(of, what, Unit::Percent, theirs.map_or(Theirs::None, Theirs::Figure), ours)
    };
    let misses = row("L3 misses, of the original's", theirs.map(|t| t.misses), patched.misses_percent(counts));
    let copy = theirs.map(|t| {
        row("L3 misses in the copy, of the original's", Some(t.copy_misses), patched.copy_misses_percent(counts))
    });
    let cycles = row("CPU time | cycles, of the original's", theirs.map(|t| t.cpu), patched.cycles_percent(counts));
    let bus = row("bus transactions, of the original's", None, patched.transactions_percent(counts));
    [Some(misses), copy, Some(cycles), Some(bus)].into_iter().flatten().collect()
}

fn shapes(shares: &Shares) -> Vec<Shape> {
    let Shares { writing, piped } = shares;
    let percent = |value| figure(value, Unit::Percent);
    let largest_but_copy = Function::ALL
        .into_iter()
        .filter(|f| !matches!(f, Function::Copy | Function::Other | Function::Usual))
        .map(|f| (share(&writing.original, f), f.name()))
        .fold((0.0, ""), |a, b| if b.0 > a.0 { b } else { a });
    let cycles = |patched: &Patched| [&patched.every, &patched.chosen].map(|counts| patched.cycles_percent(counts));
    let ([every, chosen], [every_piped, chosen_piped]) = (cycles(writing), cycles(piped));
    let shape = |claim: &str, holds, ours| Shape { claim: claim.to_owned(), holds, ours };
    vec![
        shape(
            "no other named function has 2% of the L3 misses",
            largest_but_copy.0 < 2.0,
            format!("{} {}", largest_but_copy.1, percent(largest_but_copy.0)),
        ),
        shape(
            "bypassing saves CPU time where nobody reads the copy soon",
            every < 100.0 && chosen < 100.0,
            format!("{} and {}", percent(every), percent(chosen)),
        ),
        shape(
            "the final patch saves less CPU time than the first",
            chosen > every,
            format!("{} and {}: in the model they differ by their call sites alone", percent(every), percent(chosen)),
        ),
        shape(
            "every copy bypassing loses where the copy is read at once, chosen sites do not",
            every_piped > 100.0 && chosen_piped < 100.0,
            format!("{} and {}", percent(every_piped), percent(chosen_piped)),
        ),
    ]
}
