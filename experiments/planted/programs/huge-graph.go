// Recommendation walks over a large graph held in an off-heap mapping (fixed out-degree).
package main

import (
	"fmt"
	"syscall"
	"unsafe"
)

const (
	nodes     = 64000
	degree    = 12
	hugepages = false
)

type node struct {
	visits uint32
	weight uint32
	score  uint64
	out    [degree]uint32
	embed  [512]float32 // used by another service
}

func arena(n uintptr) unsafe.Pointer {
	size := n + 4<<20
	b, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		panic(err)
	}
	if hugepages {
		syscall.Madvise(b, 14)
	}
	p := uintptr(unsafe.Pointer(&b[0]))
	off := (2<<20 - p%(2<<20)) % (2 << 20)
	return unsafe.Pointer(&b[off])
}

func main() {
	p := arena(nodes * unsafe.Sizeof(node{}))
	g := unsafe.Slice((*node)(p), nodes)
	s := uint32(1)
	for i := range g {
		n := &g[i]
		n.weight = uint32(i%7 + 1)
		n.embed[511] = 1
		for k := range n.out {
			s ^= s << 13
			s ^= s >> 17
			s ^= s << 5
			n.out[k] = s % nodes
		}
	}
	var total uint64
	var cur [16]uint32 // walks in flight
	for w := 0; w < walks; w++ {
		for k := range cur {
			cur[k] = uint32((w*16+k)*2654435761) % nodes
		}
		for st := uint32(0); st < 24; st++ {
			for k := range cur {
				n := &g[cur[k]]
				n.visits++
				total += uint64(n.weight)
				n.score += uint64(st)
				cur[k] = n.out[(st+n.visits)%degree]
			}
		}
	}
	fmt.Println(total, g[12345].visits)
}

const walks = 370000
