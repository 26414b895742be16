// Visits of each page in a map.
package main

import "fmt"

type visit struct {
	count, bytes uint64
	last         int64
}

type statistics struct {
	pages map[uint64]visit
	clock int64
}

func newStatistics() *statistics {
	return &statistics{pages: map[uint64]visit{}}
}

func (s *statistics) add(page, bytes uint64) {
	s.clock++
	v := s.pages[page]
	v.count++
	v.bytes += bytes
	v.last = s.clock
	s.pages[page] = v // dominating object
}

func (s *statistics) busiest() (most uint64) {
	for _, v := range s.pages {
		most = max(most, v.count)
	}
	return most
}

func replay(s *statistics, pages uint64, requests int) {
	random := uint64(1)
	for i := 0; i < requests; i++ {
		random = random*6364136223846793005 + 1442695040888963407
		s.add((random>>33)%pages, random>>52)
	}
}

func main() {
	s := newStatistics()
	replay(s, 100000, 800000)
	fmt.Println(len(s.pages), s.busiest())
}
