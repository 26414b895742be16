// SPDX-License-Identifier: MIT OR Apache-2.0

// Four goroutines count in one map behind a lock: some two seconds on a machine of two CPUs. The runtime's timers and
// preemption signals are what a guest's clock is hard on.
package main

import (
	"fmt"
	"sync"
)

const (
	goroutines = 4
	turns      = 20_000_000
	keys       = 50_000
)

func main() {
	var (
		lock   sync.Mutex
		all    sync.WaitGroup
		counts = map[uint64]int{}
	)
	for self := range uint64(goroutines) {
		all.Add(1)
		go func() {
			defer all.Done()
			for turn, key := 0, self; turn < turns; turn++ {
				key = key*6364136223846793005 + 1442695040888963407
				lock.Lock()
				counts[key>>40%keys]++
				lock.Unlock()
			}
		}()
	}
	all.Wait()
	fmt.Println(len(counts))
}
