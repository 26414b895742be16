// A graph of shared vertices; walkers follow random edges.
use std::cell::{Cell, RefCell};
use std::rc::Rc;

struct Vertex {
    label: u64,
    visits: Cell<u64>,
    left: RefCell<Option<Rc<Vertex>>>,
    right: RefCell<Option<Rc<Vertex>>>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

fn build(count: usize, random: &mut Random) -> Vec<Rc<Vertex>> {
    let vertices: Vec<_> = (0..)
        .filter(|label| label % 10 != 0)
        .map(|label| {
            let (left, right) = (RefCell::default(), RefCell::default());
            Rc::new(Vertex { label, visits: Cell::new(0), left, right }) // dominating object
        })
        .take(count)
        .collect();
    for vertex in &vertices {
        *vertex.left.borrow_mut() = Some(Rc::clone(&vertices[random.below(count)]));
        *vertex.right.borrow_mut() = Some(Rc::clone(&vertices[random.below(count)]));
    }
    vertices
}

fn walk(start: &Rc<Vertex>, steps: usize, random: &mut Random) -> u64 {
    let mut at = Rc::clone(start);
    for _ in 0..steps {
        at.visits.set(at.visits.get() + 1);
        let edge = if random.below(2) == 0 { &at.left } else { &at.right };
        let Some(next) = edge.borrow().clone() else { break };
        at = next;
    }
    at.label + at.visits.get()
}

fn main() {
    let mut random = Random(1);
    let vertices = build(80_000, &mut random);
    println!("{}", (0..1000).map(|n| walk(&vertices[n], 1200, &mut random)).sum::<u64>());
}
