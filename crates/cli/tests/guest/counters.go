// Two goroutines count in one object: side by side, or a line apart.
package main

import (
	"os"
	"sync"
	"sync/atomic"
)

type near struct{ a, b atomic.Int64 }

type far struct {
	a atomic.Int64
	_ [64]byte
	b atomic.Int64
}

func counters() (*atomic.Int64, *atomic.Int64) {
	if len(os.Args) > 1 && os.Args[1] == "--apart" {
		pair := new(far)
		return &pair.a, &pair.b
	}
	pair := new(near)
	return &pair.a, &pair.b
}

func count(counter *atomic.Int64, both *sync.WaitGroup) {
	for i := 0; i < 400000; i++ {
		counter.Add(1)
	}
	both.Done()
}

func main() {
	a, b := counters()
	var both sync.WaitGroup
	both.Add(2)
	go count(a, &both)
	go count(b, &both)
	both.Wait()
}
