// Particle simulation: cells are visited by a neighbour list in random order; each visit uses four hot fields
// of a 384-byte record.
#[repr(C, align(64))]
#[derive(Clone)]
struct Particle {
    x: f32, id: u64, name: [u8; 88],
    vx: f32, history: [f32; 31],
    mass: f32, props: [f32; 28],
    charge: f32, tail: [u32; 6],
}
const N: usize = 18000;
const STEPS: usize = 400;
const NEIGH: usize = 10;
const COMPUTE: usize = 10;

fn main() {
    let (history, props) = ([0.0; 31], [0.0; 28]);
    let (name, tail) = ([0; 88], [0; 6]);
    let blank = Particle { x: 0.0, vx: 0.0, mass: 1.0, charge: 0.0, id: 0, name, history, props, tail };
    let mut ps = vec![blank; N];
    let mut s: u32 = 17;
    let mut rnd = || { s ^= s << 13; s ^= s >> 17; s ^= s << 5; s };
    for (i, p) in ps.iter_mut().enumerate() {
        p.x = (rnd() % 1000) as f32 * 0.001;
        p.mass = 1.0 + (i % 5) as f32;
        p.charge = (rnd() % 3) as f32 - 1.0;
        p.id = i as u64;
    }
    let neigh: Vec<u32> = (0..N * NEIGH).map(|_| rnd() % N as u32).collect();
    for st in 0..STEPS {
        for i in 0..N {
            let mut f = 0f32;
            let xi = ps[i].x;
            for k in 0..NEIGH {
                let q = &ps[neigh[i * NEIGH + k] as usize];
                let d = q.x - xi + 0.01;
                let mut w = d;
                for _ in 0..COMPUTE { w = w * 0.6 + d * 0.01; }
                f += w * q.mass + q.charge * 0.001 - q.vx * 0.0001;
            }
            let p = &mut ps[i];
            p.vx = p.vx * 0.99 + f * 0.001;
            p.x += p.vx * 0.001;
        }
        if st == STEPS / 2 {
            let p = &mut ps[0];
            p.tail[0] += p.id as u32 + p.name[0] as u32 + p.history[0] as u32 + p.props[0] as u32;
        }
    }
    let e: f64 = ps.iter().map(|p| (p.mass * p.vx * p.vx) as f64).sum();
    println!("{:.9e} {}", e, ps[0].tail[0]);
}
