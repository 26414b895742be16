// A search tree of nodes that point to each other.
package main

import "fmt"

type node struct {
	key, value  uint64
	left, right *node
}

type tree struct {
	root *node
	size int
}

func (t *tree) insert(key, value uint64) {
	at := &t.root
	for *at != nil {
		if key < (*at).key {
			at = &(*at).left
		} else {
			at = &(*at).right
		}
	}
	*at = &node{key: key, value: value} // dominating object
	t.size++
}

func (t *tree) find(key uint64) uint64 {
	at := t.root
	for at != nil && at.key != key {
		if key < at.key {
			at = at.left
		} else {
			at = at.right
		}
	}
	if at == nil {
		return 0
	}
	return at.value
}

func scramble(n uint64) uint64 {
	n = (n + 1) * 0x9e3779b97f4a7c15
	return n ^ n>>31
}

func fill(t *tree, count uint64) {
	for n := uint64(0); n < count; n++ {
		t.insert(scramble(n), n%10)
	}
}

func main() {
	t, sum := &tree{}, uint64(0)
	fill(t, 60000)
	for n := uint64(0); n < 450000; n++ {
		sum += t.find(scramble(n * 31 % 60000))
	}
	fmt.Println(t.size, sum)
}
