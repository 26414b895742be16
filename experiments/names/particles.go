// Particles in one slice that meet in random pairs.
package main

import "fmt"

type particle struct {
	x, y, speed float64
	charge      int64
	met         uint64
}

type random uint64

func (r *random) below(limit int) int {
	*r ^= *r << 13
	*r ^= *r >> 7
	*r ^= *r << 17
	return int(uint64(*r) % uint64(limit))
}

func newParticles(count int, r *random) []particle {
	all := make([]particle, count) // dominating object
	for i := range all {
		all[i] = particle{x: float64(i), y: float64(r.below(1000)), speed: 0.5, charge: int64(i%3 - 1)}
	}
	return all
}

func meet(all []particle, times int, r *random) {
	for i := 0; i < times; i++ {
		one := &all[r.below(len(all))]
		other := &all[r.below(len(all))]
		one.x += one.speed * float64(other.charge)
		other.y += other.speed * float64(one.charge)
		one.met++
		other.met++
	}
}

func main() {
	r := random(88172645463325252)
	all := newParticles(250000, &r)
	meet(all, 2000000, &r)
	most := uint64(0)
	for i := range all {
		most = max(most, all[i].met)
	}
	fmt.Println(most)
}
