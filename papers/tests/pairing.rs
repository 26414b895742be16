//! Scratch.
use nearmiss_papers::pairing::product::Shape;
use nearmiss_papers::pairing::rates::*;
use nearmiss_papers::pairing::{run::*, policy::*, work::*, ours::Ours, theirs::Theirs};
use nearmiss_papers::parallel::answer;
use nearmiss_papers::pairing::mix;
#[test]
fn mixes() {
    for name in mix::MACHINES {
        let machine = mix::machine(name).unwrap();
        let start = std::time::Instant::now();
        let paces = mix::paces(&machine, &|| ()).unwrap();
        println!("{name} {:?} {:.1}s {:?}", machine.topology, start.elapsed().as_secs_f64(), (0..4).map(|a| (0..4).map(|b| (paces.slower(a, b) * 100.0).round() / 100.0).collect::<Vec<_>>()).collect::<Vec<_>>());
        for tasks in mix::TASKS {
            let seeds: Vec<u64> = (0..8).collect();
            let mut line = format!("  {tasks}:");
            let mut base = 0.0; let mut basem = 0.0;
            for policy in ["standard", "theirs", "ours"] {
                let counts = answer(&seeds, &|| (), |&seed| {
                    let mut p: Box<dyn Policy> = match policy { "standard" => Box::new(Standard), "theirs" => Box::new(Theirs::new(2, 10000)), _ => Box::new(Ours::new(tasks)) };
                    Ok(Run { work: mix::Mix::new(&paces, &machine, tasks, seed), policy: &mut *p, cpus: 4, daemons: Daemons { every: 75000, longest: 800 }, seed }.run(2_000_000))
                }).unwrap();
                let t = counts.iter().map(|c| c.ticks as f64 / 1000.0).sum::<f64>() / 8.0;
                let m = counts.iter().map(|c| c.ended.iter().sum::<u64>() as f64 / c.ended.len() as f64 / 1000.0).sum::<f64>() / 8.0;
                if policy == "standard" { base = t; basem = m; }
                let moves = counts.iter().map(|c| c.moves as f64).sum::<f64>() / 8.0;
                line += &format!("  {policy} all {t:.1} ({:+.2}%) mean {m:.1} ({:+.2}%) moves {moves:.0}", (t / base - 1.0) * 100.0, (m / basem - 1.0) * 100.0);
            }
            println!("{line}");
        }
        println!("{:.1}s", start.elapsed().as_secs_f64());
    }
}
#[test]
fn scratch() {
    let machine = nearmiss_papers::machine("xeon-ht-2x2").unwrap();
    let cycles: f64 = std::env::var("C").map_or(26.0, |v| v.parse().unwrap());
    let every: u64 = std::env::var("E").map_or(75000, |v| v.parse().unwrap());
    let longest: u64 = std::env::var("L").map_or(800, |v| v.parse().unwrap());
    let period: u64 = std::env::var("P").map_or(10000, |v| v.parse().unwrap());
    let load = Load { shape: Shape { row: 4900, block: 350, element: 4 }, instructions: 6, cycles, rows: 8, placements: 4 };
    let rates = load.rates(&machine, &|| ()).unwrap();
    println!("same {:?} other {:?}", rates.mean(Beside::Same), rates.mean(Beside::Other));
    let seeds: Vec<u64> = (0..40).collect();
    for name in ["standard", "theirs", "ours", "optimum"] {
        let counts = answer(&seeds, &|| (), |&seed| {
            let size = Size { threads: 8, rows_of_block: 350, blocks: 7 * 14 * 14 };
            let mut policy: Box<dyn Policy> = match name {
                "standard" => Box::new(Standard),
                "theirs" => Box::new(Theirs::new(2, period)),
                "ours" => Box::new(Ours::new(8)),
                _ => Box::new(Bound { cores: (0..8).map(|t| t % 2).collect() }),
            };
            Ok(Run { work: Product::new(&rates, &machine, size, seed), policy: &mut *policy, cpus: 4, daemons: Daemons { every, longest }, seed }.run(2_000_000))
        }).unwrap();
        let mean = |f: &dyn Fn(&Counts) -> f64| counts.iter().map(|c| f(c)).sum::<f64>() / counts.len() as f64;
        let most = |f: &dyn Fn(&Counts) -> f64| counts.iter().map(|c| f(c)).fold(0.0, f64::max);
        let t = |c: &Counts| c.ticks as f64 / 1000.0;
        let m = |c: &Counts| c.did.misses / 1e9;
        println!("{name}: time {:.1} max {:.1} misses {:.3} max {:.3} sharing {:.3} changes {:.1} moves {:.1} sched/s/cpu {:.2}", mean(&t), most(&t), mean(&m), most(&m), mean(&|c| c.sharing()), mean(&|c| c.changed() as f64), mean(&|c| c.moves as f64), mean(&|c| c.schedules as f64 * 1000.0 / c.ticks as f64 / 4.0));
        let sum = |f: &dyn Fn(&Counts) -> u64| counts.iter().map(|c| f(c)).sum::<u64>() as f64;
        let total = sum(&|c| c.classes.iter().sum());
        println!("   classes {:?} halves(i) {:.3}", [0,1,2].map(|i| (sum(&|c| c.classes[i]) / total * 1000.0).round() / 10.0), sum(&|c| c.halves[0]) / sum(&|c| c.halves[0] + c.halves[1]));
        println!("   judged other {:?} same {:?} changes {:?}", [0,1,2].map(|i| sum(&|c| c.judged[0][i])), [0,1,2].map(|i| sum(&|c| c.judged[1][i])), [0,1,2].map(|i| [0,1,2].map(|j| sum(&|c| c.changes[i][j]) / 40.0)));
        if name != "optimum" { println!("   {:?}", counts.iter().map(|c| (c.ticks / 1000, (c.sharing() * 100.0) as u64, c.changed())).collect::<Vec<_>>()); }
    }
}
