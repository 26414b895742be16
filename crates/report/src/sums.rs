//! Checks that every table adds up to the totals. The report notes those that do not.

use crate::levels::misses;
use nearmiss_record::model::{ModelRecord, Tally};

/// Returns one sentence for each table with rows that do not add up to the totals.
pub fn discrepancies(model: &ModelRecord) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |table: &str, figure: &str, rows: u64, total: u64| {
        if rows != total {
            found.push(format!(
                "The {table} table's {figure} add up to {rows}, the totals have {total}: the difference is in no row."
            ));
        }
    };
    let totals = &model.totals;
    let all_misses = |t: &Tally| (0..t.levels.len()).map(|i| misses(t, i)).fold(0, u64::wrapping_add);
    let data_misses = |t: &Tally| t.levels.iter().map(|l| l.data_misses()).fold(0, u64::wrapping_add);
    let tasks = |of_command: bool| {
        sum(model.tasks.iter().filter(|r| r.of_command == of_command).flat_map(|r| [&r.user, &r.kernel]))
    };
    let whole: [(&str, Tally, &Tally); 5] = [
        ("function", sum(model.functions.iter().map(|r| &r.tally)), totals),
        ("task", tasks(true), totals),
        ("CPU", sum(&model.cpus), totals),
        ("other tasks'", tasks(false), &model.others),
        ("other tasks' function", sum(model.other_functions.iter().map(|r| &r.tally)), &model.others),
    ];
    for (table, rows, totals) in &whole {
        check(table, "misses", all_misses(rows), all_misses(totals));
        check(table, "cycles", rows.cycles, totals.cycles);
    }
    let objects = sum(model.objects.iter().map(|r| &r.tally));
    check("object", "data misses", data_misses(&objects), data_misses(totals));
    let offsets =
        model.page_offsets.user.iter().chain(&model.page_offsets.kernel).fold(0, |a: u64, b| a.wrapping_add(*b));
    if !(model.page_offsets.user.is_empty() && model.page_offsets.kernel.is_empty()) {
        check("page offset", "transactions", offsets, totals.bus.transactions());
    }
    found
}

/// Sum of tallies.
pub fn sum<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Tally {
    tallies.into_iter().fold(Tally::default(), |mut sum, t| {
        sum += t;
        sum
    })
}
