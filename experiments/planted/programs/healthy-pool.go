// Job pool: two workers hash jobs from their own queues into padded per-worker results.
package main

import (
	"fmt"
	"sync"
)

type result struct {
	count, sum uint64
	hist       [64]uint32
	_          [112]byte
}

func main() {
	res := make([]*[3]result, 2)
	var wg sync.WaitGroup
	for w := range res {
		res[w] = new([3]result)
		wg.Add(1)
		go func(w int) {
			defer wg.Done()
			r := &res[w][1]
			x := uint64(w + 1)
			for i := 0; i < 200000000; i++ {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				r.count++
				r.sum += x & 1023
				r.hist[x>>58]++
			}
		}(w)
	}
	wg.Wait()
	fmt.Println(res[0][1].count+res[1][1].count, res[0][1].sum, res[1][1].sum, res[0][1].hist[5])
}
