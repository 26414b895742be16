// Two goroutines count in one object: side by side, or a line apart.
package main

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
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

// Each goroutine on a CPU of its own, so that both count at once however busy the machine is.
func bind(cpu uint) {
	runtime.LockOSThread()
	mask := uint64(1) << cpu
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
}

func count(cpu uint, counter *atomic.Int64, ready, both *sync.WaitGroup) {
	bind(cpu)
	ready.Done()
	ready.Wait()
	for i := 0; i < 400000; i++ {
		counter.Add(1)
	}
	both.Done()
}

func main() {
	a, b := counters()
	var ready, both sync.WaitGroup
	ready.Add(2)
	both.Add(2)
	go count(0, a, &ready, &both)
	go count(1, b, &ready, &both)
	both.Wait()
}
