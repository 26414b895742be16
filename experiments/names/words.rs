// How often each key of a stream occurs, in a hash table.
use std::collections::HashMap;

#[derive(Default)]
struct Count {
    seen: u64,
    first: u64,
    last: u64,
}

struct Counter {
    counts: HashMap<u64, Count>,
    place: u64,
}

impl Counter {
    fn new() -> Self {
        Counter { counts: HashMap::new(), place: 0 }
    }

    fn see(&mut self, key: u64) {
        self.place += 1;
        let place = self.place;
        let count = self.counts.entry(key).or_insert_with(|| Count { first: place, ..Count::default() }); // dominating object
        count.seen += 1;
        count.last = place;
    }

    fn spread(&self) -> u64 {
        self.counts.values().filter(|count| count.seen > 1).map(|count| count.last - count.first).max().unwrap_or(0)
    }
}

fn read_stream(counter: &mut Counter, keys: u64, length: u64) {
    let mut random = 1u64;
    for _ in 0..length {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        counter.see((random >> 33) % keys);
    }
}

fn main() {
    let mut counter = Counter::new();
    read_stream(&mut counter, 100_000, 2_000_000);
    println!("{} keys, spread {}", counter.counts.len(), counter.spread());
}
