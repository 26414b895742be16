// The chain laid out in walk order: 12-byte slots read one after the other.
#[derive(Clone, Copy)]
struct Slot {
    id: u32,
    a: u32,
    b: u32,
}

const N: usize = 1_200_000;

#[inline(never)]
fn read_in_order(slots: &[Slot]) -> u64 {
    let mut sum = 0u64;
    for s in slots {
        sum = sum.wrapping_add((s.a as u64) * (s.b as u64));
    }
    sum
}

fn work(id: u32) -> (u32, u32) {
    let mut v = id as u64 + 1;
    for r in 0..60u64 {
        v = (v ^ (v >> 27)).wrapping_mul(0x94d049bb133111eb).wrapping_add(r);
    }
    (v as u32, (v >> 32) as u32)
}

fn main() {
    let mut order: Vec<u32> = (0..N as u32).collect();
    let mut seed = 0x853c49e6748fea9bu64;
    for i in (1..N).rev() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        order.swap(i, ((seed >> 20) % (i as u64 + 1)) as usize);
    }
    let slots: Vec<Slot> = order
        .iter()
        .map(|&id| {
            let (a, b) = work(id);
            Slot { id, a, b }
        })
        .collect();
    let mut sum = slots[0].id as u64 & 0;
    for k in 0..2u64 {
        sum = sum.wrapping_mul(5).wrapping_add(read_in_order(&slots) ^ k);
    }
    println!("{:016x}", sum);
}
