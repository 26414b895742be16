// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Four goroutines count in one map under one lock; the runtime preempts those that run long with signals.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

func main() {
	each, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	var lock sync.Mutex
	var done sync.WaitGroup
	counts := make(map[uint32]int)
	for worker := 0; worker < 4; worker++ {
		done.Add(1)
		go func(key uint32) {
			defer done.Done()
			for i := 0; i < each; i++ {
				key = key*1664525 + 1013904223
				lock.Lock()
				counts[key>>20]++
				lock.Unlock()
			}
		}(uint32(worker))
	}
	done.Wait()
	total := 0
	for _, count := range counts {
		total += count
	}
	fmt.Println(total)
}
