// Free-list style chain in one array: each 12-byte slot names the next one by its index.
#[derive(Clone, Copy)]
struct Slot {
    next: u32,
    a: u32,
    b: u32,
}

const N: usize = 1_200_000;
const END: u32 = u32::MAX;

#[inline(never)]
fn follow_indices(slots: &[Slot], head: u32) -> u64 {
    let mut sum = 0u64;
    let mut at = head;
    while at != END {
        let s = &slots[at as usize];
        sum = sum.wrapping_add((s.a as u64) * (s.b as u64));
        at = s.next;
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
    let mut slots: Vec<Slot> = (0..N as u32)
        .map(|i| {
            let (a, b) = work(i);
            Slot { next: END, a, b }
        })
        .collect();
    for w in order.windows(2) {
        slots[w[0] as usize].next = w[1];
    }
    let mut sum = 0u64;
    for k in 0..2u64 {
        sum = sum.wrapping_mul(5).wrapping_add(follow_indices(&slots, order[0]) ^ k);
    }
    println!("{:016x}", sum);
}
