// Readings of a meter, collected into a vector, smoothed over random pairs.
#[derive(Clone, Copy)]
struct Reading {
    time: u64,
    value: f64,
    weight: f64,
    meter: u32,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn parse(number: u64, random: &mut Random) -> Reading {
    Reading { time: number, value: (random.next() % 1000) as f64, weight: 0.5, meter: (number % 31) as u32 }
}

fn load(count: u64) -> Vec<Reading> {
    let mut random = Random(88172645463325252);
    (0..count).map(|number| parse(number, &mut random)).collect() // dominating object
}

fn smooth(readings: &mut [Reading], rounds: usize) -> f64 {
    let mut random = Random(2463534242);
    let mut sum = 0.0;
    for _ in 0..rounds {
        let other = readings[random.next() as usize % readings.len()];
        let at = (random.next() + other.time) as usize % readings.len();
        let one = &mut readings[at];
        one.value = one.value * one.weight + other.value * other.weight;
        sum += one.value + f64::from(one.meter);
    }
    sum
}

fn main() {
    let mut readings = load(250_000);
    println!("{:.0}", smooth(&mut readings, 2_500_000));
}
