// Two clerks settle transfers; each keeps its own totals.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
)

type transfer struct {
	from, to uint16
	cents    int32
	urgent   bool
}

type clerk struct {
	settled  uint64
	turnover int64
	refused  uint64
	fees     int64
}

func newClerks(n int) []clerk {
	return make([]clerk, n)
}

// The day's transfers arrive by batch files, out of order; they are sorted by urgency, then by amount.
func load(n int) []transfer {
	day := make([]transfer, n)
	x := uint64(0x9E3779B97F4A7C15)
	for i := range day {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		day[i] = transfer{uint16(x % 512), uint16((x >> 9) % 512), int32((x>>20)%90000) + 1, x>>60 == 0}
	}
	sort.Slice(day, func(a, b int) bool {
		if day[a].urgent != day[b].urgent {
			return day[a].urgent
		}
		return day[a].cents < day[b].cents
	})
	return day
}

//go:noinline
func (c *clerk) settle(accounts []int64, t *transfer) {
	if t.from == t.to {
		c.refused++
		return
	}
	fee := int64(t.cents) >> 10
	if t.urgent {
		fee += 25
	}
	accounts[t.from] -= int64(t.cents) + fee
	accounts[t.to] += int64(t.cents)
	c.settled++
	c.turnover += int64(t.cents)
	c.fees += fee
}

func main() {
	rounds := 60
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	day := load(700000)
	clerks := newClerks(2)
	books := make([][]int64, 2)
	var wg sync.WaitGroup
	for w := range clerks {
		books[w] = make([]int64, 4096)
		wg.Add(1)
		go func(w int) {
			defer wg.Done()
			half := len(day) / 2
			mine := day[w*half : (w+1)*half]
			for r := 0; r < rounds; r++ {
				for i := range mine {
					clerks[w].settle(books[w], &mine[i])
				}
			}
		}(w)
	}
	wg.Wait()
	var all clerk
	digest := uint64(0)
	for w := range clerks {
		all.settled += clerks[w].settled
		all.turnover += clerks[w].turnover
		all.refused += clerks[w].refused
		all.fees += clerks[w].fees
		for _, a := range books[w] {
			digest = digest*1099511628211 + uint64(a)
		}
	}
	fmt.Println("settled", all.settled, "turnover", all.turnover, "refused", all.refused, "fees", all.fees, "digest", digest)
}
